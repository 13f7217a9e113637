// Mounts GraphiQL with our fetcher and a panel of examples, once the gateway has told what there is.
"use strict";
window.sluice.ready.then((data) => {
  const { post, subscribe, session } = window.sluice;
  const h = React.createElement;

  // How many responses of a stream stay on the page.
  const kept = 50;

  // operationOf finds the operation that is meant. It reads the text: what GraphiQL
  // passes along may be of the tab that was shown a moment ago. undefined: the
  // gateway says what is wrong.
  function operationOf({ query, operationName }) {
    try {
      const operations = GraphiQL.GraphQL.parse(query).definitions.filter((d) => d.kind === "OperationDefinition");
      return operations.length === 1 ? operations[0] : operations.find((d) => d.name?.value === operationName);
    } catch {
      return undefined;
    }
  }

  // fetcher answers with a promise, and for a subscription with an observable
  // whose values hold the latest responses, so that none is lost to the eye.
  function fetcher(request, { headers } = {}) {
    const operation = operationOf(request);
    const payload = { ...request, operationName: operation ? operation.name?.value : request.operationName };
    if (operation?.operation !== "subscription") return post(payload, { headers, repeatable: operation?.operation === "query" });
    return {
      subscribe(sink) {
        const latestFirst = [];
        let received = 0, state = "live";
        const show = () => sink.next({ received, state, latestFirst });
        const stop = subscribe(payload, {
          next(response) {
            received++;
            latestFirst.unshift(response);
            latestFirst.length = Math.min(latestFirst.length, kept);
            show();
          },
          state(now) {
            state = now;
            show();
          },
          error: (error) => sink.error(error),
          complete: () => sink.complete(),
        }, { headers });
        return { unsubscribe: stop };
      },
    };
  }

  function Icon() {
    return h("svg", { viewBox: "0 0 16 16", fill: "none", stroke: "currentColor", strokeWidth: 1.5, "aria-hidden": true },
      h("path", { d: "M2.5 3.5h11M2.5 8h11M2.5 12.5h7" }));
  }

  // Examples is the panel; an example opens in a tab of its own.
  function Examples() {
    const { addTab, queryEditor, variableEditor } = GraphiQL.React.useEditorContext({ nonNull: true });
    const show = (example) => {
      addTab();
      if (matchMedia("(max-width: 50rem)").matches) {
        document.querySelector('button[aria-label="Hide Examples"]')?.click(); // the open panel hides the editors
      }
      requestAnimationFrame(() => {
        queryEditor.setValue(example.query);
        variableEditor.setValue(example.variables);
        queryEditor.focus();
      });
    };
    const groups = [...new Set(data.examples.map((e) => e.group))];
    return h("section", { "aria-label": "Examples", className: "sluice-examples" },
      h("div", { className: "graphiql-doc-explorer-title" }, "Examples"),
      groups.map((group) => h(React.Fragment, { key: group },
        h("h3", null, group),
        h("ul", null, data.examples.filter((e) => e.group === group).map((e) =>
          h("li", { key: e.title }, h("button", { type: "button", onClick: () => show(e) }, e.title)))))),
      h("div", { className: "sluice-about" },
        h("p", null, `Sluice ${data.version} on ${data.store}`),
        h("p", null, ["/healthz", "/readyz", ...(session.token() ? [] : ["/metrics"]), "/console/plain", "/console/LICENSES.txt"].map((path) =>
          h("a", { key: path, href: path }, path.split("/").pop().replace("plain", "plain page").replace("LICENSES.txt", "licences"))))));
  }

  const first = data.examples.filter((e) => e.first);
  // GraphiQL takes the first tab's variables from here, at the first visit only.
  const visited = localStorage.getItem("graphiql:tabState") !== null;
  ReactDOM.createRoot(document.getElementById("graphiql")).render(
    h(GraphiQL, {
      fetcher,
      defaultTabs: first.map(({ query, variables }) => ({ query, variables })),
      defaultQuery: "",
      variables: visited ? undefined : first[0]?.variables,
      defaultEditorToolsVisibility: "variables",
      plugins: [{ title: "Examples", icon: Icon, content: Examples }],
      shouldPersistHeaders: false,
    }, h(GraphiQL.Logo, null, h("span", { className: "sluice-title" }, "Sluice"))));
});
