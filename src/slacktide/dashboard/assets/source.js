// Where views come from: a stream of a live scheduler (server-sent events), or instants of a recording.

const AGAIN = [500, 1000, 2000, 5000, 10000]; // milliseconds until a lost stream is asked for again

let token = new URLSearchParams(location.hash.slice(1)).get("token") || "";
if (token) history.replaceState(null, "", location.pathname); // it does not stay in the address

export const setToken = (text) => { token = text; };

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

export async function ask(path, query = {}, options = {}) {
  const words = new URLSearchParams(query).toString();
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(`/${path}${words ? `?${words}` : ""}`, { headers, cache: "no-store", credentials: "omit", ...options });
  if (answer.ok) return answer;
  let text = `${path}: status ${answer.status}`;
  try {
    text = (await answer.json()).error || text;
  } catch { /* no JSON: the status says it */ }
  throw new Refused(answer.status, text);
}

export const askJson = async (path, query, options) => (await ask(path, query, options)).json();

// Calls take(view) for each view of the stream, until it ends.
async function read(answer, take) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
      if (data) take(JSON.parse(data));
    }
  }
}

// Begins with what there is. told: { view(view), state(word, text), timeline(head, view), refused(error) }
export async function connect(told) {
  for (let failures = 0; ; failures += 1) {
    try {
      const answer = await ask("view");
      if (!(answer.headers.get("Content-Type") || "").startsWith("text/event-stream")) {
        told.timeline(await answer.json());
        return;
      }
      told.state("live", "live");
      failures = 0;
      await read(answer, told.view);
      told.state("lost", "the scheduler ended the stream; asking again");
    } catch (error) {
      if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
        told.refused(error);
        return;
      }
      told.state("lost", error instanceof Refused ? error.message : "cannot be reached; asking again");
    }
    await new Promise((go) => { setTimeout(go, AGAIN[Math.min(failures, AGAIN.length - 1)]); });
  }
}
