// Apollo Client with its default cache.
import { ApolloClient, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { ApolloProvider, useMutation, useQuery } from "@apollo/client/react";
import { show } from "./page.jsx";

const client = new ApolloClient({ link: new HttpLink({ uri: "/graphql" }), cache: new InMemoryCache() });
const parsed = new Map();
const document = ({ params: { text } }) => parsed.get(text) ?? parsed.set(text, gql(text)).get(text);

show({
  Provider: ({ children }) => <ApolloProvider client={client}>{children}</ApolloProvider>,
  useRead(artifact, variables) {
    const { data, error } = useQuery(document(artifact), { variables });
    if (error) throw error;
    return data;
  },
  useWrite(artifact) {
    const [write] = useMutation(document(artifact));
    return (variables) => write({ variables }).then(({ data }) => data);
  },
  records: () => client.cache.extract(),
});
