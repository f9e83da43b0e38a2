// SBUF and PSUM over time: every buffer as a rectangle of its life and bytes, who is there at the peak.
import type { Kernel, Memory } from "./data.ts";
import { Picture, bytes, el, table, theme, time } from "./dom.ts";

const LEFT = 70, TOP = 8, HEIGHT = 260, MOST_RECTS = 20000;
const COLORS = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#ff9da7", "#9c755f", "#e15759", "#86bcb6"];

export function memory(kernel: Kernel): HTMLElement {
  return el("div", {}, ...Object.entries(kernel.memory).map(([name, m]) => space(kernel, name.toUpperCase(), m)));
}

function space(kernel: Kernel, name: string, m: Memory<Int32Array>): HTMLElement {
  const peak = m.held.reduce((best, held, i) => held > m.held[best]! ? i : best, 0);
  const at = m.time[peak] ?? 0, most = m.held[peak] ?? 0, unit = m.unit === 1 ? "bytes per partition" : "banks";
  const lives = Array.from(m.lives.start.keys()), present = lives.filter((i) => m.lives.start[i]! <= at && at < m.lives.end[i]!);
  const size = (i: number) => m.buffers[m.lives.buffer[i]!]!.bytes;
  const extent = Math.max(1, ...lives.map((i) => m.lives.address[i]! + size(i)), m.unit === 1 ? most : most * m.unit);
  const details = el("p", { class: "details", "aria-live": "polite" }, "Select a rectangle to see its buffer.");
  const whole = Math.max(1, kernel.totalNs * kernel.perNs), x = (t: number, w: number) => LEFT + (t / whole) * (w - LEFT - 8), y = (b: number) => TOP + (b / extent) * (HEIGHT - TOP - 24);
  const picture = new Picture(() => HEIGHT, (c, w) => {
    const t = theme();
    c.textAlign = "right"; c.strokeStyle = t.grid;
    const step = m.unit === 1 ? 2 ** Math.ceil(Math.log2(extent / 5)) : m.unit;
    for (let b = 0; b <= extent; b += step) { c.fillStyle = t.soft; c.fillText(m.unit === 1 ? bytes(b) : `bank ${b / m.unit}`, LEFT - 6, y(b) + 4); c.beginPath(); c.moveTo(LEFT, y(b)); c.lineTo(w - 8, y(b)); c.stroke(); }
    for (const i of lives.slice(0, MOST_RECTS)) {
      c.fillStyle = COLORS[m.lives.buffer[i]! % COLORS.length]!;
      const [left, top] = [x(m.lives.start[i]!, w), y(m.lives.address[i]!)], [wide, high] = [x(m.lives.end[i]!, w) - left, y(m.lives.address[i]! + size(i)) - top];
      c.fillRect(left, top, Math.max(wide, 0.6), Math.max(high - 0.5, 1));
      if (wide > 50 && high > 12) { c.fillStyle = "#111"; c.textAlign = "left"; c.fillText(m.buffers[m.lives.buffer[i]!]!.name, left + 3, top + 11, wide - 4); c.textAlign = "right"; }
    }
    c.strokeStyle = t.accent; c.beginPath(); c.moveTo(x(at, w), TOP); c.lineTo(x(at, w), HEIGHT - 24); c.stroke();
    c.textAlign = "center"; c.fillStyle = t.accent; c.fillText(`peak ${time(at / kernel.perNs)}`, Math.min(w - 50, Math.max(LEFT + 40, x(at, w))), HEIGHT - 8);
  }, `${name} over time: at most ${most} ${unit}`);
  picture.canvas.addEventListener("click", (e) => {
    const hit = lives.findLast((i) => x(m.lives.start[i]!, picture.width) - 1 <= e.offsetX && e.offsetX <= x(m.lives.end[i]!, picture.width) + 1 && y(m.lives.address[i]!) <= e.offsetY && e.offsetY <= y(m.lives.address[i]! + size(i)));
    if (hit === undefined) return;
    const b = m.buffers[m.lives.buffer[hit]!]!;
    details.textContent = `${b.name}: ${b.dtype} ${JSON.stringify(b.shape)}, ${bytes(b.bytes)} per partition from byte ${m.lives.address[hit]}, from ${time(m.lives.start[hit]! / kernel.perNs)} to ${time(m.lives.end[hit]! / kernel.perNs)}.`;
  });
  picture.request();
  const top = Math.max(0, ...present.map((i) => m.lives.address[i]! + size(i))), sum = present.reduce((s, i) => s + size(i), 0);
  const limit = m.unit === 1 ? m.bytes : m.bytes / m.unit;
  return el("section", {}, el("h3", {}, name), el("p", {}, `At most ${most} of ${limit} ${unit}, at ${time(at / kernel.perNs)}. `,
    top > sum ? `The buffers present then have ${bytes(sum)} and reach up to byte ${top}: ${bytes(top - sum)} between them are free. ` : "",
    lives.length ? "" : "Lives of buffers are left out: not every iteration was played.", lives.length > MOST_RECTS ? `The first ${MOST_RECTS} of ${lives.length} lives are drawn.` : ""),
    picture.canvas, details, present.length ? table(["buffer", "shape", "dtype", "bytes per partition"], present.sort((a, b) => size(b) - size(a)).slice(0, 20).map((i) => { const b = m.buffers[m.lives.buffer[i]!]!; return [b.name, b.shape.join(" × "), b.dtype, b.bytes]; }), `${name} at the peak`) : null);
}
