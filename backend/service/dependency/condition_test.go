package dependency_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
)

func condition() *descriptor.Shape {
	return &descriptor.Shape{Name: "Condition", Fields: []descriptor.Field{
		{Name: "type", Type: descriptor.TypeString}, {Name: "status", Type: descriptor.TypeString}, {Name: "reason", Type: descriptor.TypeString},
		{Name: "message", Type: descriptor.TypeString}, {Name: "observedGeneration", Type: descriptor.TypeSafeInt}, {Name: "lastTransitionTime", Type: descriptor.TypeTime},
	}}
}

func tree(t *testing.T, raw string) map[string]any {
	t.Helper()
	out, err := jsontree.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func text(t *testing.T, v map[string]any) string {
	t.Helper()
	raw, err := jsontree.Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestCondition_ARenumberedStatusIsTheOneThatIsMadeOfTheTree(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, before := range []string{`{}`, `{"id":"x","resource":{"name":"a"}}`, `{"a":1,"conditions":[],"z":1}`, `{"conditions":[{"type":"Available","x":1}]}`} {
		status := dependency.SetConditions(tree(t, before), condition(), dependency.Done(9), now)
		stored := text(t, status)
		got, ok := dependency.WithObservedGeneration(stored, 9, 10, true)
		want := dependency.SetConditions(tree(t, stored), condition(), dependency.Done(10), now.Add(time.Hour))
		if !ok || got != text(t, want) {
			t.Errorf("got  %v %s\nwant %s", ok, got, text(t, want))
		}
	}
	done := dependency.SetConditions(nil, condition(), dependency.Done(9), now)
	stored := text(t, done)
	for what, status := range map[string]string{
		"none":                ``,
		"another generation":  strings.Replace(stored, `"observedGeneration":9`, `"observedGeneration":8`, 1),
		"a longer generation": strings.Replace(stored, `"observedGeneration":9`, `"observedGeneration":99`, 1),
		"another message":     strings.Replace(stored, "up to date", "current", 1),
		"another status":      strings.Replace(stored, `"status":"True"`, `"status":"Unknown"`, 1),
		"a third condition":   strings.Replace(stored, `}]}`, `},{"type":"Ready"}]}`, 1),
		"one condition":       stored[:strings.Index(stored, `,{`)] + `]}`,
		"a text that is cut":  stored[:40],
		"one of them twice":   strings.Replace(stored, `"type":"Progressing"`, `"type":"Available"`, 1),
	} {
		if got, ok := dependency.WithObservedGeneration(status, 9, 10, true); ok {
			t.Errorf("%s: %s", what, got)
		}
	}
}

func TestCondition_TheConditionsOfWhatWaitsAreRenumberedAsTheyAre(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	waits := []dependency.Wait{{Key: backend.Key{Kind: "Room", Name: "a\"\\"}, For: dependency.Missing}, {Key: backend.Key{Kind: "Room", Name: "b"}, For: dependency.NotReady}}
	status := dependency.SetConditions(tree(t, `{"id":"x"}`), condition(), dependency.Waiting(waits, 9), now)
	want := dependency.SetConditions(status, condition(), dependency.Waiting(waits, 10), now)
	got, ok := dependency.WithObservedGeneration(text(t, status), 9, 10, false)
	if !ok || got != text(t, want) {
		t.Errorf("got  %v %s\nwant %s", ok, got, text(t, want))
	}
	if got, ok := dependency.WithObservedGeneration(text(t, status), 9, 10, true); ok {
		t.Errorf("it is not done: %s", got)
	}
}

func TestCondition_AConditionHasTheFieldsOfItsShapeAndKeepsOthers(t *testing.T) {
	shape := condition()
	shape.Fields = slices.DeleteFunc(shape.Fields, func(f descriptor.Field) bool { return f.Name == "reason" })
	shape.Field("observedGeneration").Type = descriptor.TypeBoolean
	before := tree(t, `{"conditions":[{"type":"Ready","status":"True"},{"type":"Available","status":"False","mine":1,"lastTransitionTime":"2025-01-01T00:00:00Z"}]}`)
	got := dependency.SetConditions(before, shape, dependency.Done(3), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	want := `{"conditions":[{"status":"True","type":"Ready"},{"lastTransitionTime":"2026-01-02T03:04:05Z","message":"The resource is available","mine":1,"status":"True","type":"Available"},{"lastTransitionTime":"2026-01-02T03:04:05Z","message":"The resource is up to date","status":"False","type":"Progressing"}]}`
	if text(t, got) != want {
		t.Errorf("got  %s\nwant %s", text(t, got), want)
	}
}

func TestCondition_AMessageNamesWhatIsWaitedForInOrder(t *testing.T) {
	var refs []kind.ResourceRef
	targets := map[backend.Key]dependency.Target{}
	add := func(of, name string) {
		key := backend.Key{Kind: of, Namespace: "n", Name: name}
		refs, targets[key] = append(refs, kind.ResourceRef{Key: key}), dependency.Target{}
	}
	add("Subnet", "b")
	add("Network", "z")
	for i := range 71 {
		add("Port", fmt.Sprintf("p%02d", i))
	}
	waits := dependency.NewReferences(backend.Key{Kind: "Server", Namespace: "n", Name: "s"}, refs, dependency.Before{}).Decide(targets, nil).Waits
	message, _ := json.Marshal(dependency.Waiting(waits, 1)[0].Message)
	if got := string(message); !strings.HasPrefix(got, `"Waiting for Network/z to be created\nWaiting for Port/p00 to be created\n`) || !strings.HasSuffix(got, `\nand for 9 others"`) {
		t.Errorf("%s", got)
	}
}
