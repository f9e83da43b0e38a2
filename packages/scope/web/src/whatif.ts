// What if: other targets and costs, each played by the model when the page was written.
import type { Kernel } from "./data.ts";
import { el, percent, table, time } from "./dom.ts";

const HEADS: Record<string, string> = { target: "Another target", mode: "As the toolchain makes it, or as written", cost: "Another cost" };

export function whatIf(kernel: Kernel): HTMLElement {
  const change = (ns: number) => `${ns < kernel.totalNs ? "−" : "+"}${percent(Math.abs(ns - kernel.totalNs) / (kernel.totalNs || 1))}`;
  const parts = Object.entries(HEADS).map(([kind, head]) => {
    const rows = kernel.whatIf.filter((w) => w.kind === kind).sort((a, b) => (a.totalNs ?? Infinity) - (b.totalNs ?? Infinity));
    if (!rows.length) return null;
    return el("section", {}, el("h3", {}, head), table(["change", "to", "time", "difference"], rows.map((w) => w.totalNs === undefined ? [w.name, w.to, "not played", w.reason ?? ""] : [w.name, w.to, time(w.totalNs), change(w.totalNs)]), `${head}: from ${time(kernel.totalNs)}`));
  });
  return el("div", {}, el("p", {}, `${kernel.name} takes ${time(kernel.totalNs)} on ${kernel.target}. Each row was played by the model with one change, when the page was written. Costs without a row change nothing; their names are in the table of docs/model.md.`), ...parts);
}
