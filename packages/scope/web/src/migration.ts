// Files before and after a migration, side by side, with the rules of each line.
import type { Document } from "./data.ts";
import { el } from "./dom.ts";

export function migration(doc: Document): HTMLElement {
  return el("div", {}, ...doc.migrations.flatMap((file) => [el("h3", {}, file.path),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${file.path} before and after` },
      el("table", { class: "sides" },
      el("thead", {}, el("tr", {}, ...["", "before", "", "after", "rules"].map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", {}, ...file.rows.map(([kind, old, before, now, after]) => el("tr", { class: kind },
        el("td", { class: "n" }, old === null ? "" : String(old)), el("td", {}, el("code", {}, before)),
          el("td", { class: "n" }, now === null ? "" : String(now)), el("td", {}, el("code", {}, after)),
        el("td", {}, ...(old === null ? [] : file.rules[old] ?? []).map((rule) => el("div", {}, rule))))))))]));
}
