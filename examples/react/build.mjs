// Builds public/app.js; with --serve it also serves the page and builds again at each request.
// SLUICE_SERVER is the gateway that the page talks to, PORT where the page is.
import { context } from "esbuild";

const gateway = process.env.SLUICE_SERVER ?? "http://127.0.0.1:8080";
const serve = process.argv.includes("--serve");
const build = await context({
  entryPoints: ["src/main.jsx"],
  bundle: true,
  outfile: process.env.OUTFILE ?? "public/app.js",
  jsx: "automatic",
  format: "esm",
  target: "es2022",
  minify: !serve,
  sourcemap: serve,
  define: { GATEWAY: JSON.stringify(gateway), "process.env.NODE_ENV": JSON.stringify(serve ? "development" : "production") },
});
if (serve) {
  const port = Number(process.env.PORT ?? 5173);
  await build.serve({ host: "127.0.0.1", port, servedir: "public" });
  console.log(`http://127.0.0.1:${port}/ shows the networks of ${gateway}`);
} else {
  await build.rebuild();
  await build.dispose();
}
