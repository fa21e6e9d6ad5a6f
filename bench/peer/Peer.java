// The light load on CloudSim Plus: java -cp ... Peer.java REQUESTS HOSTS
// REQUESTS: lines "admission duration cores megabytes", by admission. Prints one line of JSON.
import ch.qos.logback.classic.Level;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import org.cloudsimplus.allocationpolicies.VmAllocationPolicySimple;
import org.cloudsimplus.brokers.DatacenterBrokerSimple;
import org.cloudsimplus.core.CloudSimPlus;
import org.cloudsimplus.core.CloudSimTag;
import org.cloudsimplus.core.events.SimEvent;
import org.cloudsimplus.datacenters.Datacenter;
import org.cloudsimplus.datacenters.DatacenterSimple;
import org.cloudsimplus.hosts.Host;
import org.cloudsimplus.hosts.HostSimple;
import org.cloudsimplus.resources.Pe;
import org.cloudsimplus.resources.PeSimple;
import org.cloudsimplus.util.Log;
import org.cloudsimplus.vms.Vm;
import org.cloudsimplus.vms.VmSimple;

public class Peer {
    static final int CORES = 8;
    static final int MEGABYTES = 16_000;
    static final int MIPS = 1;
    static final double LEAST_STEP = 1e-6; // seconds between an event and its answer

    /** Submits each request at its admission and destroys it when its life is over; who finds no host waits in order. */
    static final class Submitter extends DatacenterBrokerSimple {
        static final int ARRIVAL = 100_001;
        static final int RELEASED = 100_002;
        final double[][] requests;
        final Deque<Vm> waiting = new ArrayDeque<>();
        Datacenter datacenter;
        boolean trying;
        long placed, failed, completed;
        int next;

        Submitter(CloudSimPlus simulation, double[][] requests) {
            super(simulation);
            this.requests = requests;
        }

        @Override
        public void startInternal() {
            schedule(this, requests[0][0], ARRIVAL);
        }

        @Override
        public void requestShutdownWhenIdle() {
            // A datacenter calls this after each destruction; the run ends with its last event.
        }

        @Override
        public void processEvent(SimEvent event) {
            switch (event.getTag()) {
                case ARRIVAL -> arrive();
                case RELEASED -> { completed++; retry(); }
                case CloudSimTag.VM_CREATE_ACK -> answered((Vm) event.getData());
                default -> { }
            }
        }

        void arrive() {
            double[] one = requests[next];
            Vm vm = new VmSimple(next, MIPS, (long) one[2]);
            vm.setRam((long) one[3]).setBw(0).setSize(0).setBroker(this);
            next++;
            if (next < requests.length)
                schedule(this, Math.max(0.0, requests[next][0] - getSimulation().clock()), ARRIVAL);
            sendNow(datacenter, CloudSimTag.VM_CREATE_ACK, vm);
        }

        void answered(Vm vm) {
            boolean again = trying && vm == waiting.peekFirst();
            trying = trying && !again;
            if (vm.isCreated()) {
                placed++;
                double life = requests[(int) vm.getId()][1];
                schedule(datacenter, life, CloudSimTag.VM_DESTROY, vm);
                schedule(this, life + LEAST_STEP, RELEASED);
                if (again) {
                    waiting.removeFirst();
                    retry();
                }
            } else {
                failed++;
                if (!again) waiting.addLast(vm);
            }
        }

        void retry() {
            if (trying || waiting.isEmpty()) return;
            trying = true;
            sendNow(datacenter, CloudSimTag.VM_CREATE_ACK, waiting.peekFirst());
        }
    }

    static double[][] read(Path path) throws Exception {
        List<double[]> rows = new ArrayList<>();
        for (String line : Files.readAllLines(path)) {
            String[] words = line.split(" ");
            double[] row = new double[words.length];
            for (int k = 0; k < row.length; k++) row[k] = Double.parseDouble(words[k]);
            rows.add(row);
        }
        return rows.toArray(new double[0][]);
    }

    public static void main(String[] words) throws Exception {
        Log.setLevel(Level.OFF);
        double[][] requests = read(Path.of(words[0]));
        var bean = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long wall = System.nanoTime(), processor = bean.getProcessCpuTime();
        CloudSimPlus simulation = new CloudSimPlus(LEAST_STEP);
        List<Host> hosts = new ArrayList<>();
        for (int number = 0; number < Integer.parseInt(words[1]); number++) {
            List<Pe> cores = new ArrayList<>();
            for (int core = 0; core < CORES; core++) cores.add(new PeSimple(MIPS));
            HostSimple host = new HostSimple(MEGABYTES, 1, 1, cores);
            host.setStateHistoryEnabled(false);
            hosts.add(host);
        }
        Submitter submitter = new Submitter(simulation, requests);
        submitter.datacenter = new DatacenterSimple(simulation, hosts, new VmAllocationPolicySimple());
        simulation.start();
        System.out.printf(Locale.ROOT,
            "{\"placed\": %d, \"completed\": %d, \"failed\": %d, \"end\": %.3f, \"wall\": %.3f, \"processor\": %.3f}%n",
            submitter.placed, submitter.completed, submitter.failed, simulation.clock(),
            (System.nanoTime() - wall) / 1e9, (bean.getProcessCpuTime() - processor) / 1e9);
    }
}
