// Findings of checks with their cures, and errors.
import type { Document } from "./data.ts";
import { el } from "./dom.ts";

export function findings(doc: Document): HTMLElement {
  const items = doc.findings.map((f) => el("li", { class: f.severity }, el("b", {}, f.label), `: ${f.message}`, f.count > 1 ? ` (${f.count} times)` : "", f.at ? el("span", { class: "soft" }, ` ${doc.files[f.at[0]]?.path ?? ""}:${f.at[1]}`) : null, f.cure ? el("p", {}, `Cure: ${f.cure}`) : null, el("pre", {}, f.text)));
  return el("div", {}, ...doc.errors.map((e) => el("pre", { class: "error" }, e)),
    items.length ? el("ul", { class: "findings" }, ...items) : el("p", {}, "No findings. Checks run where they are named: nki-run --check all --report FILE.html SCRIPT."));
}
