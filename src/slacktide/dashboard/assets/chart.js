// Slack over time as a line: above zero the promise is kept, below it is missed.

import { colour, fitted } from "./colours.js";
import { clockText, duration } from "./format.js";

const EDGE = { left: 86, right: 10, top: 10, bottom: 22 };

// points: pairs of instant and seconds (null: infinite); marks: instants at which a pod was disrupted.
export function spark(canvas, points, width, height) {
  const drawn = fitted(canvas, width, height);
  const finite = points.filter((one) => one[1] !== null);
  if (points.length < 2) return;
  const [from, to] = [points[0][0], points[points.length - 1][0]];
  const x = (at) => ((at - from) / Math.max(to - from, 1e-9)) * (width - 2) + 1;
  if (!finite.length) {
    line(drawn, [[x(from), height / 2], [x(to), height / 2]], colour("kept"), 1.5, [3, 3]);
    return;
  }
  const { low, high } = range(finite);
  const y = (slack) => height - 2 - ((slack - low) / (high - low)) * (height - 4);
  if (low < 0) line(drawn, [[0, y(0)], [width, y(0)]], colour("axis"), 1, [2, 2]);
  signed(drawn, finite, x, y, 1.5);
}

export function chart(canvas, points, marks, clock) {
  const { width, height } = canvas.getBoundingClientRect();
  const drawn = fitted(canvas, width, height);
  const finite = points.filter((one) => one[1] !== null);
  drawn.font = "12px system-ui, sans-serif";
  drawn.fillStyle = colour("muted");
  if (points.length < 2 || !finite.length) {
    drawn.fillText(points.length && !finite.length ? "no limit: as things stand the promise cannot break" : "not enough seen yet", 8, height / 2);
    return;
  }
  const [from, to] = [points[0][0], points[points.length - 1][0]];
  const { low, high } = range(finite);
  const x = (at) => EDGE.left + ((at - from) / Math.max(to - from, 1e-9)) * (width - EDGE.left - EDGE.right);
  const y = (slack) => height - EDGE.bottom - ((slack - low) / (high - low)) * (height - EDGE.top - EDGE.bottom);
  drawn.textAlign = "right";
  drawn.textBaseline = "middle";
  const ticks = low < 0 && high > 0 ? [low, 0, high] : [low, high];
  for (const tick of ticks) {
    if (tick !== 0 && Math.abs(y(tick) - y(0)) < 12 && low < 0) continue;
    line(drawn, [[EDGE.left, y(tick)], [width - EDGE.right, y(tick)]], colour(tick === 0 ? "axis" : "grid"), 1);
    drawn.fillText(duration(tick), EDGE.left - 6, y(tick));
  }
  drawn.textBaseline = "alphabetic";
  drawn.textAlign = "left";
  drawn.fillText(clockText(from, clock), EDGE.left, height - 6);
  drawn.textAlign = "right";
  drawn.fillText(clockText(to, clock), width - EDGE.right, height - 6);
  for (const at of marks) {
    if (at >= from && at <= to) line(drawn, [[x(at), EDGE.top], [x(at), height - EDGE.bottom]], colour("missed"), 1, [2, 3]);
  }
  signed(drawn, finite, x, y, 2);
}

function range(points) {
  let [low, high] = [0, 0];
  for (const [, slack] of points) {
    low = Math.min(low, slack);
    high = Math.max(high, slack);
  }
  return high - low < 1 ? { low: low - 0.5, high: high + 0.5 } : { low, high }; // less than a second is level
}

// The line in the colour of what it says: each piece by its sign, cut where it crosses zero.
function signed(drawn, points, x, y, width) {
  const pieces = [[], []];
  for (let i = 1; i < points.length; i += 1) {
    const [[t0, a], [t1, b]] = [points[i - 1], points[i]];
    if ((a < 0) !== (b < 0)) {
      const cross = t0 + (a / (a - b)) * (t1 - t0);
      pieces[a < 0 ? 1 : 0].push([[x(t0), y(a)], [x(cross), y(0)]]);
      pieces[b < 0 ? 1 : 0].push([[x(cross), y(0)], [x(t1), y(b)]]);
    } else pieces[a < 0 ? 1 : 0].push([[x(t0), y(a)], [x(t1), y(b)]]);
  }
  pieces.forEach((list, place) => {
    drawn.strokeStyle = colour(place ? "missed" : "kept");
    drawn.lineWidth = width;
    drawn.lineJoin = "round";
    drawn.setLineDash([]);
    drawn.beginPath();
    for (const [from, to] of list) {
      drawn.moveTo(...from);
      drawn.lineTo(...to);
    }
    drawn.stroke();
  });
}

function line(drawn, points, ink, width, dash = []) {
  drawn.strokeStyle = ink;
  drawn.lineWidth = width;
  drawn.setLineDash(dash);
  drawn.beginPath();
  points.forEach((one, place) => (place ? drawn.lineTo(...one) : drawn.moveTo(...one)));
  drawn.stroke();
}
