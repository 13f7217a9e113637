package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/sluicegw/sluice/graph/client"
)

// recorded returns a client of a gateway that gives one answer, and a function that returns the variables which the
// gateway has received.
func recorded(t *testing.T, answer string) (c *client.Client, variables func() string) {
	t.Helper()
	var sent json.RawMessage
	c = serve(t, func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Variables struct{ Input json.RawMessage }
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		sent = body.Variables.Input
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, answer)
	})
	return c, func() string { return string(sent) }
}

func TestWrite_MetadataArePatchedAtARevision(t *testing.T) {
	c, variables := recorded(t, `{"data": {"update": {"written": {"metadata": {"revision": "1-3"}}}}}`)
	disk, web := client.Kind{Name: "Disk", Singular: "disk"}, "web"
	revision, err := c.PatchMetadata(context.Background(), client.MetadataPatch{
		Kind: disk, Name: "a", ExpectedRevision: "1-2", AddFinalizers: []string{"x.org/y"}, Labels: map[string]*string{"team": &web, "old": nil},
	})
	want := `{"addFinalizers":["x.org/y"],"dryRun":false,"expectedRevision":"1-2","labels":[{"key":"old","value":null},{"key":"team","value":"web"}],"name":"a"}`
	if revision != "1-3" || err != nil || variables() != want {
		t.Errorf("%s %v: %s", revision, err, variables())
	}
	_, err = c.PatchMetadata(context.Background(), client.MetadataPatch{
		Kind: disk, Name: "a", ExpectedRevision: "1-3", RemoveFinalizers: []string{"x.org/y"}, Annotations: map[string]*string{"a": &web}, DryRun: true,
	})
	if want := `{"annotations":[{"key":"a","value":"web"}],"dryRun":true,"expectedRevision":"1-3","name":"a","removeFinalizers":["x.org/y"]}`; err != nil || variables() != want {
		t.Errorf("%v: %s", err, variables())
	}
	if _, err := c.PatchMetadata(context.Background(), client.MetadataPatch{Kind: client.Kind{Name: "Disk", Verbs: []string{"GET"}}, Name: "a"}); err == nil {
		t.Error("a verb that is not offered is asked for")
	}
}

func TestWrite_ADeletionNamesWhatItIsBasedOn(t *testing.T) {
	c, variables := recorded(t, `{"data": {"delete": {"state": "PENDING", "blockedBy": {"totalCount": 2, "nodes": [{"kind": "File", "name": "f"}]}}}}`)
	got, err := c.Delete(context.Background(), client.DeleteRequest{Kind: client.Kind{Name: "Disk"}, Namespace: "m", Name: "a", ExpectedRevision: "1-2", DryRun: true})
	if got.State != "PENDING" || got.BlockedBy.TotalCount != 2 || got.BlockedBy.Nodes[0].Name != "f" || err != nil || variables() != `{"namespace":"m","name":"a","expectedRevision":"1-2","dryRun":true}` {
		t.Errorf("%+v %v: %s", got, err, variables())
	}
	_, err = c.Delete(context.Background(), client.DeleteRequest{Kind: client.Kind{Name: "Disk", Scope: "GLOBAL"}, Namespace: "m", Name: "a"})
	if err != nil || variables() != `{"name":"a","dryRun":false}` {
		t.Errorf("%v: %s", err, variables())
	}
	if _, err := c.Delete(context.Background(), client.DeleteRequest{Kind: client.Kind{Name: "Disk", Verbs: []string{"GET"}}, Name: "a"}); err == nil {
		t.Error("a verb that is not offered is asked for")
	}
}

func TestWrite_ADryDeletionIsOfThePreview(t *testing.T) {
	c, _ := recorded(t, `{"data": {"delete": {"state": "FINALIZING", "resource": null, "preview": {"namespace": "m", "uid": "u"}}, "resource": {"metadata": {"finalizers": ["x.org/y"]}}}}`)
	got, err := c.Delete(context.Background(), client.DeleteRequest{Kind: client.Kind{Name: "Disk"}, Namespace: "m", Name: "a", DryRun: true})
	if err != nil || *got.Namespace != "m" || got.UID != "u" || len(got.Finalizers) != 1 || got.Finalizers[0] != "x.org/y" {
		t.Errorf("%+v %v", got, err)
	}
	c, _ = recorded(t, `{"data": {"delete": {"state": "FINALIZING", "resource": {"metadata": {"namespace": "m", "uid": "u", "finalizers": ["x.org/z"]}}, "preview": null}}}`)
	got, err = c.Delete(context.Background(), client.DeleteRequest{Kind: client.Kind{Name: "Disk"}, Namespace: "m", Name: "a"})
	if err != nil || *got.Namespace != "m" || got.UID != "u" || len(got.Finalizers) != 1 || got.Finalizers[0] != "x.org/z" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestWrite_AStatusIsSentInTheFormOfTheAPI(t *testing.T) {
	c, variables := recorded(t, `{"data": {"update": {"written": {"metadata": {"revision": "1-3"}}}}}`)
	kind := client.Kind{Name: "Disk", Singular: "disk", Fields: []client.Field{{Path: "status.parts.sizes", Type: "MapEntry", List: true}, {Path: "status.parts", Type: "Part", List: true}}}
	status := map[string]any{"parts": []any{map[string]any{"name": "p", "sizes": map[string]any{"x": "1"}}}, "n": json.Number("9007199254740993")}
	revision, err := c.UpdateStatus(context.Background(), client.StatusRequest{Kind: kind, Name: "a", ExpectedRevision: "1-2", Status: status})
	want := `{"dryRun":false,"expectedRevision":"1-2","name":"a","status":{"n":9007199254740993,"parts":[{"name":"p","sizes":[{"key":"x","value":"1"}]}]}}`
	if revision != "1-3" || err != nil || variables() != want {
		t.Errorf("%s %v: %s", revision, err, variables())
	}
}
