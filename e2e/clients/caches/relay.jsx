// Relay with a store as it comes.
import { RelayEnvironmentProvider, useLazyLoadQuery, useMutation } from "react-relay";
import { Environment, Network, RecordSource, Store } from "relay-runtime";
import { show } from "./page.jsx";

const environment = new Environment({
  store: new Store(new RecordSource()),
  network: Network.create(async ({ text }, variables) => {
    const response = await fetch("/graphql", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ query: text, variables }) });
    return response.json();
  }),
});

show({
  Provider: ({ children }) => <RelayEnvironmentProvider environment={environment}>{children}</RelayEnvironmentProvider>,
  useRead: (artifact, variables) => useLazyLoadQuery(artifact, variables),
  useWrite(artifact) {
    const [commit] = useMutation(artifact);
    return (variables) => new Promise((onCompleted, onError) => commit({ variables, onCompleted, onError }));
  },
  records: () => environment.getStore().getSource().toJSON(),
});
