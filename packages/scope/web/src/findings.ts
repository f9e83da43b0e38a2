// Findings of checks with their cures, and errors.
import type { At, Kernel } from "./data.ts";
import { el } from "./dom.ts";
import { type Selection, firstOfLine } from "./model.ts";

/** The findings; `open` shows a view, where the line of a finding is selected if a kernel has instructions of it. */
export function findings(selection: Selection, open: (view: string) => void): HTMLElement {
  const doc = selection.document;
  const line = (at: NonNullable<At>) => {
    const has = (kernel: Kernel) => firstOfLine(kernel, at) >= 0;
    const kernel = selection.now && has(selection.now) ? selection.kernel : doc.kernels.findIndex(has);
    const pick = () => {
      if (kernel !== selection.kernel) selection.show(kernel);
      selection.pickLine(at.join(":"), firstOfLine(selection.now, at));
      open("Source");
    };
    return kernel < 0 ? null : el("button", { onclick: pick }, `${doc.files[at[0]]?.path ?? ""}:${at[1]}`);
  };
  const items = doc.findings.map((f) => el("li", {}, el("pre", {}, f.text), f.at && line(f.at)));
  return el("div", {}, ...doc.errors.map((e) => el("pre", { class: "error" }, e)),
    items.length ? el("ul", { class: "findings" }, ...items)
      : el("p", {}, "No findings. Checks run where they are named: nki-run --check all --report FILE.html SCRIPT."));
}
