// A search: its best latency over candidates, the gain of each step, the kernel before and after.
import type { Document, Schedule } from "./data.ts";
import { Picture, el, percent, roundStep, table, theme, time } from "./dom.ts";
import { Selection } from "./model.ts";
import { TimelineView } from "./timeline.ts";

const HEIGHT = 200, LEFT = 80, BOTTOM = 24;

export function schedule(doc: Document): HTMLElement {
  return el("div", {}, ...doc.schedules.flatMap((s, n) => ({ ...s, at: s.kernel ?? 2 * n }))
    .flatMap((s) => [el("h3", {},
    `${s.name}: ${time(s.rootNs)} before, ${time(doc.kernels[s.at + 1]!.totalNs)} after ${s.steps.length} steps`),
    curve(s), steps(s), ...["Before", "After"].map((head, k) => timeline(doc, head, s.at + k))]));
}

function curve(s: Schedule): HTMLElement {
  if (!s.curve.length) return el("p", { class: "soft" }, "The search has not kept its curve.");
  const points: [number, number][] =
    [[0, s.rootNs], ...s.curve.map(([candidates, , ns]): [number, number] => [candidates, ns])],
    [last, best] = points.at(-1)!;
  const picture = new Picture(() => HEIGHT, (c, width) => {
    const t = theme(), most = Math.max(...points.map(([, ns]) => ns)), right = width - 8;
    const x = (n: number) => LEFT + (n / (last || 1)) * (right - LEFT),
      y = (ns: number) => HEIGHT - BOTTOM - (ns / most) * (HEIGHT - BOTTOM - 12);
    c.textAlign = "right"; c.fillStyle = t.soft; c.strokeStyle = t.grid;
    const step = roundStep(most / 4);
    for (let ns = 0; ns <= most; ns += step) {
      c.fillText(time(ns), LEFT - 6, y(ns) + 4); c.beginPath(); c.moveTo(LEFT, y(ns));
      c.lineTo(right, y(ns)); c.stroke();
    }
    c.fillText(`${last} candidates`, right, HEIGHT - 6);
    c.strokeStyle = t.accent; c.lineWidth = 2; c.beginPath();
    points.forEach(([n, ns], i) =>
      { if (i) { c.lineTo(x(n), y(points[i - 1]![1])); c.lineTo(x(n), y(ns)); } else c.moveTo(x(n), y(ns)); });
    c.stroke(); c.lineWidth = 1;
  }, `Best latency over candidates: from ${time(s.rootNs)} to ${time(best)} after ${last} candidates`);
  picture.request();
  return picture.canvas;
}

function steps(s: Schedule): HTMLElement {
  const before = (n: number) => n ? s.steps[n - 1]!.ns : s.rootNs;
  const gain = (ns: number | null, n: number) =>
    { const was = before(n); return ns === null || was === null ? "not played" : ns === was ? "none"
    : `${ns > was ? "+" : "−"}${time(Math.abs(was - ns))} (${percent(Math.abs(was - ns) / s.rootNs)})`; };
  return table(["step", "", "time after it", "gain"],
    s.steps.map(({ step, ns }, n) =>
    [n + 1, el("code", {}, step), ns === null ? "not played" : time(ns), gain(ns, n)]),
    `Steps of the schedule, from ${time(s.rootNs)}`);
}

function timeline(doc: Document, head: string, kernel: number): HTMLElement {
  const selection = new Selection(doc);
  selection.kernel = kernel;
  return el("section", {}, el("h3", {}, `${head}: ${time(doc.kernels[kernel]!.totalNs)}`),
    new TimelineView(doc.kernels[kernel]!, selection).root);
}
