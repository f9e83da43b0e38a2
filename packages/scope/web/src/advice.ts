// Causes of waiting and single lines, with the gain that the model gave without each.
import type { Advice, Kernel } from "./data.ts";
import { el, percent, time } from "./dom.ts";
import { type Selection, firstOfLine } from "./model.ts";

const gain = (kernel: Kernel, ns: number, saves = "saves"): string =>
  ns > 0 ? `${saves} ${time(ns)} (${percent(ns / kernel.totalNs)})` : "saves nothing";

export function advice(selection: Selection, open: (view: string) => void): HTMLElement {
  const kernel = selection.now, files = selection.document.files;
  if (!kernel.advice.length) return el("p", {},
    "No advice: nothing was found, or the kernel is too large to be played again with changes.");
  const line = (at: readonly number[]) =>
    el("button", { onclick: () => { selection.pickLine(at.join(":"), firstOfLine(kernel, at)); open("Source"); } },
    `${files[at[0]!]?.path.split("/").pop()}:${at[1]}`);
  const best = ({ gainNs, nextNs, isBound }: Advice) => (nextNs ?? 0) > gainNs
    ? `${gain(kernel, nextNs!)} after the ones above` : gain(kernel, gainNs, isBound ? "at most" : "saves");
  const other = ({ gainNs, nextNs }: Advice) =>
    nextNs === null || nextNs === gainNs ? ""
    : nextNs > gainNs ? ` Alone it ${gain(kernel, gainNs)}.`
    : ` After the ones above it ${gain(kernel, nextNs)}${nextNs > 0 ? "" : " more"}.`;
  const item = (a: Advice) => el("li", {}, el("h4", {}, `${a.title}: ${best(a)}`), el("p", {}, a.text),
    el("p", { class: "soft" }, `Played again: ${a.experiment}.`, other(a)),
    a.lines.length ? el("p", { class: "bar" }, ...a.lines.map((at) => line(at!))) : null);
  const part = (name: Advice["part"], head: string, text: string) => {
    const entries = kernel.advice.filter((a) => a.part === name);
    const list = el("ol", { class: "advice" }, ...entries.map(item));
    return entries.length ? [el("h3", {}, head), el("p", {}, text), list] : [];
  };
  return el("div", {}, ...part("cause", "Causes of waiting",
    "The kernel was changed as each entry says, and the model played it again."),
    ...part("bound", "Bounds",
      "No change of the kernel was played for these. The kernel was played on a machine without the cost: "
        + "no change can save more, and most save less."),
    ...part("line", "Lines of the critical path",
      "The kernel was played without each line: no change of it can save more."),
    ...part("minor", "Seen, with hardly a gain",
      "Each of these gains less than 1% alone and after the causes above: it waits behind something larger. "
        + "They matter once that is gone."));
}
