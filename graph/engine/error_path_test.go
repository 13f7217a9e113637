package engine_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
)

func TestAnErrorNamesThePlaceThatTheRequestHas(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	const manifest = "apiVersion: example.org/v1\nkind: Token\nsubKind: robot\nmetadata: {name: t, labels: {\"bad key\": a}}\nspec: {serviceRef: a, extras: {UPPER: a}}\n"
	token := func(extras string) string {
		return `mutation { createToken(input: {name: "t", subKind: "robot", labels: [{key: "bad key", value: "a"}], spec: {serviceRef: "a", extras: ` + extras + `}}) { dryRun } }`
	}
	for _, c := range []struct{ query, fields string }{
		{token(`[{key: "a", value: "b"}, {key: "UPPER", value: "a"}, {key: "c", value: ""}]`), "input.labels[0].key input.spec.extras[1].key input.spec.extras[2].value"},
		{token(`[{key: "a", value: "b"}, {key: "a", value: "c"}]`), "input.spec.extras[1].key"},
		{`mutation { applyManifest(input: {manifest: "` + strings.NewReplacer("\n", `\n`, `"`, `\"`).Replace(manifest) + `"}) { dryRun } }`, `input.manifest.metadata.labels["bad key"] input.manifest.spec.extras.UPPER`},
		{`mutation { applyManifest(input: {manifest: "kind: Token\nmetadata: {labels: [a]}"}) { dryRun } }`, "input.manifest.metadata.labels"},
		{`{ resources(kind: "Token", namespace: "default") { totalCount } }`, "namespace"},
		{`{ tokens(first: 1001) { totalCount } }`, "first"},
		{`{ tokens(filter: {labels: [{key: "", ne: "x"}]}) { totalCount } }`, "filter.labels[0].key"},
	} {
		got := g.do(c.query, nil)
		var fields []string
		for _, e := range got.Errors {
			if field, ok := e.Extensions["field"].(string); ok {
				fields = append(fields, field)
			}
		}
		if strings.Join(fields, " ") != c.fields {
			t.Errorf("%s\ngot  %s %v\nwant %s", c.query, strings.Join(fields, " "), got.Errors, c.fields)
		}
	}
}

// A resource has one id. What decodes to its key in another way is none.
func TestAnIDThatIsNotTheOneOfItsResourceIsNoID(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	for _, key := range []backend.Key{
		{Kind: "services", Name: "a"}, {Kind: "service", Name: "a"}, {Kind: "Service", Namespace: "default", Name: "a"},
		{Kind: "Box", Name: "a"}, {Kind: "Box", Namespace: "Bad", Name: "a"}, {Kind: "Service", Name: "Bad Name"}, {Kind: "Service"},
	} {
		for _, query := range []string{`query($id: ID!) { node(id: $id) { id } }`, `query($id: ID!) { nodes(ids: [$id]) { id } }`, `query($id: ID!) { dependencyTree(id: $id) { truncated } }`, `mutation($id: ID!) { deleteBox(input: {id: $id}) { state } }`} {
			got := g.do(query, map[string]any{"id": kind.GlobalID(key)})
			if len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Message, "is not an id of this API") {
				t.Errorf("%+v: %s: %v", key, query, got.Errors)
			}
		}
	}
}

func TestAnOrTakesFiftyElements(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	of := func(n int) answer {
		return g.do(`{ services(filter: {or: [`+strings.Repeat(`{name: {eq: "a"}} `, n)+`]}) { totalCount } }`, nil)
	}
	if got := of(50); len(got.Errors) > 0 {
		t.Error(got.Errors)
	}
	if got := of(51); len(got.Errors) != 1 {
		t.Errorf("%s %v", got.Data, got.Errors)
	}
	if got := g.do(`{ services(filter: {or: [`+strings.Repeat(`{} `, 51)+`]}) { totalCount } }`, nil); len(got.Errors) != 1 {
		t.Errorf("%s %v", got.Data, got.Errors)
	}
}
