// The page: the hosts of a namespace, and what its visitor asks for besides. It shows what the client's cache has.
import { Suspense, useState } from "react";
import { createRoot } from "react-dom/client";
import create from "../artifacts/documentsCreateMutation.graphql.js";
import remove from "../artifacts/documentsDeleteMutation.graphql.js";
import hosts from "../artifacts/documentsHostsQuery.graphql.js";
import key from "../artifacts/documentsKeyQuery.graphql.js";
import needs from "../artifacts/documentsNeedsQuery.graphql.js";
import reveal from "../artifacts/documentsRevealQuery.graphql.js";
import tree from "../artifacts/documentsTreeQuery.graphql.js";
import update from "../artifacts/documentsUpdateMutation.graphql.js";

const namespace = new URLSearchParams(location.search).get("namespace");

// show renders the page with a client.
export function show({ Provider, useRead, useWrite, records }) {
  window.records = records;

  function Hosts({ found }) {
    const data = useRead(hosts, { namespace });
    if (!data) return null;
    const { nodes, totalCount } = data.hosts;
    return (
      <ul aria-label="Hosts">
        {nodes.map(({ id, metadata, spec }) => (
          <li key={id} data-id={id}>{metadata.name}: {spec.title}; {spec.disks.map(({ cloudId, size }) => `${cloudId} ${size}`).join(", ")}</li>
        ))}
        <li>{totalCount} in all</li>
      </ul>
    );
  }

  // Each question is a section that stays on the page.
  const sections = {
    Needs({ name }) {
      const data = useRead(needs, { namespace, name });
      return data && data.host.dependencies.nodes.map(({ name, path, state }) => `${name} ${path} ${state}`).join(", ");
    },
    Tree({ id }) {
      const data = useRead(tree, { id });
      return data && data.dependencyTree.dependencies.map(({ name, level, state }) => `${name} ${level} ${state}`).join(", ");
    },
    Key({ name }) {
      const data = useRead(key, { namespace, name });
      return data && `${data.key.metadata.name} of ${data.key.spec.owner}`;
    },
    Reveal({ name }) {
      const data = useRead(reveal, { namespace, name });
      return data && data.reveal.values.map(({ path, text }) => `${path} ${text}`).join(", ");
    },
    Dry({ verb, input }) {
      const write = useWrite({ create, update, remove }[verb]);
      const [said, setSaid] = useState("");
      const run = async () => {
        const { written } = await write({ input: { ...input, namespace, dryRun: true } });
        setSaid(`${JSON.stringify(written.host)}, would be ${written.preview.name} ${JSON.stringify(written.preview.specJSON)}`);
      };
      return said || <button onClick={run}>{verb}</button>;
    },
  };

  function Page() {
    const [asked, setAsked] = useState([]);
    window.ask = (title, section, props) => setAsked((before) => [...before, { title, section, props }]);
    return (
      <Provider>
        <Suspense><Hosts /></Suspense>
        {asked.map(({ title, section, props }) => {
          const Section = sections[section];
          return <section key={title} aria-label={title}><Suspense><Section {...props} /></Suspense></section>;
        })}
      </Provider>
    );
  }

  createRoot(document.getElementById("root")).render(<Page />);
}
