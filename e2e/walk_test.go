package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestTheWalkThroughControllersEndsAsItSays runs the commands of docs/controllers.md: all
// is available in the end but for what it names, whose conditions say what it quotes.
func TestTheWalkThroughControllersEndsAsItSays(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../docs/controllers.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := strings.Join(strings.Fields(string(raw)), " ")
	g := start(t, "")
	h := startControlledBy(t, g)
	apply := func(stdin string, args ...string) {
		t.Helper()
		if out, errOut, code := g.cli(stdin, append([]string{"apply", "-n", "shop"}, args...)...); code != 0 {
			t.Fatal(out, errOut)
		}
	}
	apply("", "-f", "../examples/manifests/shop", "-f", "../examples/manifests/uplink")
	apply(`{apiVersion: v1, kind: Secret, metadata: {name: shop-cloud}, stringData: {clouds.yaml: "clouds: {region-one: {auth: {token: `+cloudToken+`}}}"}}`, "-f", "-")
	uplink := map[string]any{"properties": map[string]any{"name": "uplink", "external": true, "tags": []string{"public"}}}
	if err := h.cloud.do("POST", "/v1/Network", uplink, new(cloudObject)); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := g.cli("", "wait", "-n", "shop", "port/web-1", "port/web-2", "port/database", "--for=condition=Available"); code != 0 {
		t.Fatal(errOut)
	}
	left := map[string]string{
		"Project shop":     "referenced resource does not exist in OpenStack",
		"Subnet uplink-v4": "Waiting for OpenStack resource to be created externally",
	}
	for name, message := range left {
		if !strings.Contains(guide, "`"+name+"`") || !strings.Contains(guide, "`"+message+"`") {
			t.Errorf("the guide does not say of %s: %s", name, message)
		}
	}
	h.until("the rest is available", func() error {
		out, errOut, code := g.cli("", "get", "all", "-n", "shop", "-o", "json")
		if code != 0 {
			t.Fatal(errOut)
		}
		var list struct {
			Items []struct {
				Kind     string
				Metadata struct{ Name string }
				Status   struct {
					Conditions []struct{ Type, Status, Message string }
				}
			}
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != 15 {
			t.Fatalf("%d resources, want 15", len(list.Items))
		}
		for _, r := range list.Items {
			name := r.Kind + " " + r.Metadata.Name
			for _, c := range r.Status.Conditions {
				if message := left[name]; c.Type == "Available" && (c.Status == "True" == (message != "") || message != "" && c.Message != message) {
					return fmt.Errorf("%s: %+v", name, c)
				}
			}
		}
		return nil
	})
}
