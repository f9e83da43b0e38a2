// Causes of waiting, with the gain that the model gave without each.
import type { Kernel } from "./data.ts";
import { el, percent, time } from "./dom.ts";
import type { Selection } from "./model.ts";

const gain = (kernel: Kernel, ns: number): string => ns > 0 ? `saves ${time(ns)} (${percent(ns / kernel.totalNs)})` : "saves nothing";

export function advice(selection: Selection, open: (view: string) => void): HTMLElement {
  const kernel = selection.now, files = selection.document.files;
  if (!kernel.advice.length) return el("p", {}, "No advice: nothing was found, or the kernel is too large to be played again with changes.");
  const items = kernel.advice.map((a) => el("li", {}, el("h3", {}, `${a.title}: ${gain(kernel, a.gainNs)}`), el("p", {}, a.text),
    el("p", { class: "soft" }, `Played again: ${a.experiment}.`, a.nextNs === null ? "" : ` Alone it ${gain(kernel, a.gainNs)}; after the ones above it ${gain(kernel, a.nextNs)} more.`),
    a.lines.length ? el("p", { class: "bar" }, ...a.lines.map((at) => el("button", { onclick: () => { selection.pickLine(at!.join(":"), first(kernel, at!)); open("Source"); } }, `${files[at![0]]?.path.split("/").pop()}:${at![1]}`))) : null));
  return el("div", {}, el("p", {}, "Each cause was taken away in the model and the kernel was played again. Gains are of the model, on a machine without that cost: changes of the kernel reach a part of them."), el("ol", { class: "advice" }, ...items));
}

function first(kernel: Kernel, at: readonly number[]): number {
  return kernel.bars.call.findIndex((call) => kernel.calls[call]!.at?.join(":") === at.join(":"));
}
