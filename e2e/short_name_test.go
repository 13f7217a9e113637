package e2e_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAShortNameIsTakenWhereverTheNameOfAKindIs(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	if out, errOut, code := g.cli(networkManifest, "apply", "-f", "-"); code != 0 {
		t.Fatal(out, errOut)
	}
	a := g.must(`{ resource(kind: "net", name: "net-a") { kind } resources(kind: "NET") { nodes { metadata { name } } } }`)
	if a.get("resource", "kind") != "Network" || a.get("resources", "nodes", 0, "metadata", "name") != "net-a" {
		t.Errorf("%+v", a)
	}
	if a := g.post(`{ resource(kind: "all", name: "net-a") { kind } }`, nil); a.codes() != "BAD_USER_INPUT" {
		t.Errorf("all: %+v", a)
	}
}

func TestTheCatalogueTellsShortNamesAndColumns(t *testing.T) {
	t.Parallel()
	type column struct {
		Title, Path string
		Wide        bool
	}
	var got struct {
		Kinds []struct {
			Name       string
			ShortNames []string
			Columns    []column
		}
	}
	raw, err := json.Marshal(start(t, "").must(`{ kinds { name shortNames columns { title path wide } } }`).Data)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	for _, k := range got.Kinds {
		withID := !slices.Contains([]string{"AccessBinding", "AccessRole", "RoleAssignment", "RouterInterface", "Secret"}, k.Name)
		if len(k.Columns) < 2 || withID && (len(k.ShortNames) != 1 || k.Columns[0] != (column{Title: "ID", Path: "status.cloudId"})) {
			t.Errorf("%+v", k)
		}
		if k.Name == "Subnet" {
			want := []column{{"ID", "status.cloudId", false}, {"CIDR", "status.resource.cidr", false}, {"NETWORK", "spec.resource.networkRef", false}, {"GATEWAY", "status.resource.gatewayIP", true}}
			if diff := cmp.Diff(want, k.Columns); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		}
	}
}
