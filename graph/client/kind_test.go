package client_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/graph/client"
)

func TestKind_PathsOfKindsAreThoseOfManifests(t *testing.T) {
	c, _ := recorded(t, `{"data": {"kinds": [{"name": "Room",
		"fields": [
			{"apiPath": "spec.doors", "path": "spec.openings", "type": "Door", "list": true, "keys": ["side"]},
			{"apiPath": "spec.doors.side", "path": "spec.openings.wall", "type": "String"},
			{"apiPath": "spec.plain", "path": "spec.text", "type": "MapEntry", "list": true, "mergeInto": "coded"},
			{"apiPath": "spec.coded", "path": "spec.data", "type": "MapEntry", "list": true}
		],
		"filterableFields": [{"path": "spec.doors.side", "sortable": true}],
		"columns": [{"title": "SIDE", "path": "spec.doors.side"}],
		"references": [{"path": "spec.doors.side", "kind": "Room", "field": "next"}]
	}]}}`)
	kinds, err := c.DescribedKinds(context.Background())
	if err != nil || len(kinds) != 1 {
		t.Fatal(kinds, err)
	}
	want := client.Kind{
		Name: "Room",
		Fields: []client.Field{
			{Path: "spec.openings", APIPath: "spec.doors", Type: "Door", List: true, Keys: []string{"wall"}},
			{Path: "spec.openings.wall", APIPath: "spec.doors.side", Type: "String"},
			{Path: "spec.text", APIPath: "spec.plain", Type: "MapEntry", List: true, MergeInto: "data"},
			{Path: "spec.data", APIPath: "spec.coded", Type: "MapEntry", List: true},
		},
		FilterableFields: []client.FilterableField{{Path: "spec.openings.wall", Sortable: true}},
		Columns:          []client.Column{{Title: "SIDE", Path: "spec.openings.wall"}},
		References:       []client.Reference{{Path: "spec.openings.wall", Kind: "Room", Field: "next"}},
	}
	if diff := cmp.Diff(want, kinds[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := kinds[0].APIPath("spec.openings.wall"); got != "spec.doors.side" {
		t.Error(got)
	}
}
