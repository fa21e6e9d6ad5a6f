// The palette's colours as the style sheet has them now, for what is drawn on canvas.

const CLASSES = 8;
let known = new Map();

export function forget() {
  known = new Map();
}

export function colour(name) {
  let found = known.get(name);
  if (!found) {
    found = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "#888";
    known.set(name, found);
  }
  return found;
}

// The class's variable, in order of importance as in the report.
export const classInk = (place) => `class-${(place % CLASSES) + 1}`;

export const classVariable = (place) => `var(--${classInk(place)})`;

// A canvas of the size of its box, in device pixels; draws in CSS pixels.
export function fitted(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  const [wide, high] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const drawn = canvas.getContext("2d");
  drawn.setTransform(scale, 0, 0, scale, 0, 0);
  drawn.clearRect(0, 0, width, height);
  return drawn;
}
