// Bundles src/ into the assets of the Python package; the same input gives the same bytes.
import { build } from "esbuild";
const out = process.argv[2] ?? "../src/nki_scope/assets";
const common = { bundle: true, minify: true, target: "es2022", legalComments: "inline", logLevel: "error", charset: "utf8" };
const banner = "/* nki-scope, Apache-2.0. Generated from packages/scope/web by npm run build. */";
await build({ ...common, entryPoints: ["src/page.ts"], outfile: `${out}/page.js`, format: "iife", banner: { js: banner } });
await build({ ...common, entryPoints: ["src/page.css"], outfile: `${out}/page.css`, banner: { css: banner } });
