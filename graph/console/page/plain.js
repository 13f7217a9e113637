// The plain page: one operation, its variables, its answer.
"use strict";
window.sluice.ready.then((data) => {
  const { post, subscribe, session } = window.sluice;
  const at = (id) => document.getElementById(id);
  const query = at("query"), variables = at("variables"), answer = at("answer"), state = at("state"), example = at("example");

  // How many responses of a stream stay on the page.
  const kept = 200;
  let stop = null;

  // operations finds the operations of a document and where each begins: words at
  // the outermost level, outside of comments and strings.
  function operations(text) {
    const found = [];
    let depth = 0, fragment = false;
    for (const m of text.matchAll(/#[^\n]*|"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|[{}()]|@?[_A-Za-z][_0-9A-Za-z]*/g)) {
      const [word] = m;
      if (word === "{" || word === "(") {
        if (depth++ === 0 && word === "{" && !fragment && !found.some((o) => o.open)) found.push({ type: "query", start: m.index, open: true });
      } else if (word === "}" || word === ")") {
        if (--depth === 0 && word === "}") {
          fragment = false;
          for (const o of found) o.open = false;
        }
      } else if (depth === 0 && word === "fragment" && !found.some((o) => o.open)) {
        fragment = true;
      } else if (depth === 0 && !fragment && ["query", "mutation", "subscription"].includes(word) && !found.some((o) => o.open)) {
        found.push({ type: word, start: m.index, open: true });
      } else if (depth === 0 && !fragment && found.at(-1)?.open && !("name" in found.at(-1))) {
        found.at(-1).name = /^[_A-Za-z]/.test(word) ? word : undefined;
      }
    }
    return found;
  }

  // chosen is the operation that the text cursor stands in, or the first.
  function chosen(text) {
    const all = operations(text);
    const before = all.filter((o) => o.start <= query.selectionStart);
    return before.at(-1) ?? all[0] ?? { type: "query" };
  }

  // show adds a response, and follows if the last one was in view; replace shows it alone.
  function show(value, { replace } = {}) {
    if (replace) answer.replaceChildren();
    const pre = document.createElement("pre");
    pre.textContent = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    const follow = answer.scrollHeight - answer.scrollTop - answer.clientHeight < 40;
    answer.append(pre);
    while (answer.childElementCount > kept) answer.firstElementChild.remove();
    answer.scrollTop = replace ? 0 : follow ? answer.scrollHeight : answer.scrollTop;
  }

  function idle(text) {
    stop = null;
    at("stop").disabled = true;
    state.textContent = text;
  }

  async function run() {
    stop?.();
    const payload = { query: query.value };
    try {
      if (variables.value.trim() !== "") payload.variables = JSON.parse(variables.value);
    } catch (error) {
      idle("");
      return show(`Variables: ${error.message}`, { replace: true });
    }
    const operation = chosen(query.value);
    if (operation.name) payload.operationName = operation.name;
    answer.replaceChildren();
    if (matchMedia("(max-width: 50rem)").matches) at("request").querySelector(".buttons").scrollIntoView(); // the answer is below
    at("stop").disabled = false;
    if (operation.type === "subscription") {
      let received = 0;
      state.textContent = "connecting";
      stop = subscribe(payload, {
        next(response) {
          state.textContent = `live, ${++received} received`;
          show(response);
        },
        state(now) { state.textContent = { live: `live, ${received} received`, login: "waits for a login", waiting: "connection lost, trying again" }[now]; },
        error(error) { idle("ended"); show(error.message); },
        complete() { idle(`ended, ${received} received`); },
      });
      return;
    }
    const request = new AbortController();
    stop = () => request.abort();
    state.textContent = "running";
    const start = performance.now();
    try {
      const response = await post(payload, { signal: request.signal, repeatable: operation.type === "query" });
      show(response, { replace: true });
      idle(`${Math.round(performance.now() - start)} ms`);
    } catch (error) {
      if (error.name === "AbortError") return;
      show(error.message, { replace: true });
      idle("failed");
    }
  }

  function pick(index) {
    query.value = data.examples[index].query;
    variables.value = data.examples[index].variables;
    query.setSelectionRange(0, 0);
  }

  for (const group of new Set(data.examples.map((e) => e.group))) {
    const options = document.createElement("optgroup");
    options.label = group;
    data.examples.forEach((e, index) => { if (e.group === group) options.append(new Option(e.title, index)); });
    example.append(options);
  }
  example.addEventListener("change", () => pick(example.value));
  at("request").addEventListener("submit", (event) => { event.preventDefault(); run(); });
  at("request").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); }
  });
  at("stop").addEventListener("click", () => { stop?.(); idle("stopped"); });
  pick(0);
  at("about").textContent = `${data.version} on ${data.store}; `;
  at("metrics").hidden = session.token() !== "";
  at("main").hidden = false;
});
