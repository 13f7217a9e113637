package kinds_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/kinds"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata")

const divider = "\n----\n"

// load reads a transcript's SDL: files that begin with "# file: name", or one of the transcript's name.
func load(name, text string) (*kinds.Schema, error) {
	var files []*ast.Source
	for i, part := range strings.Split(text, "# file: ") {
		file, body := name+".graphqls", part
		if i > 0 {
			file, body, _ = strings.Cut(part, "\n")
		}
		if strings.TrimSpace(body) != "" {
			files = append(files, &ast.Source{Name: file, Input: body})
		}
	}
	return kinds.Load(files...)
}

func TestRefusalsNameTheAuthorsLine(t *testing.T) {
	files, err := filepath.Glob("testdata/refused/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(strings.ReplaceAll(name, "_", " "), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text, want, _ := strings.Cut(string(raw), divider)
			got := ""
			if _, err := load(name, text); err != nil {
				got = err.Error() + "\n"
			}
			if *update {
				if err := os.WriteFile(file, []byte(text+divider+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got == "" {
				t.Error("nothing was refused")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func accepted(t *testing.T, file string) *kinds.Schema {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := kinds.Load(&ast.Source{Name: filepath.Base(file), Input: string(raw)})
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestTheDescriptorIsWhatTheAuthorWrote(t *testing.T) {
	colour := &descriptor.Enum{Name: "Colour", Values: []descriptor.EnumValue{{Name: "DARK_RED", Stored: "dark-red"}, {Name: "BLUE", Stored: "BLUE"}}}
	owner := func(least int) *descriptor.Shape {
		return &descriptor.Shape{Name: "Owner", MinProperties: least, MaxProperties: 1, Fields: []descriptor.Field{
			{Name: "name", Type: descriptor.TypeString, Constraint: descriptor.Constraint{MaxLength: new(10), Format: descriptor.FormatName, Pattern: "^o"}},
			{Name: "id", APIName: "ownerId", Type: descriptor.TypeString, Constraint: descriptor.Constraint{MaxLength: new(36), Format: descriptor.FormatUUID}},
		}}
	}
	board := &descriptor.Shape{Name: "Board", Fields: []descriptor.Field{
		{Name: "at", APIName: "place", Type: descriptor.TypeInt, Required: true},
		{Name: "owner", Type: descriptor.TypeObject, Shape: owner(0)},
	}}
	want := descriptor.Kind{
		Name: "APIShelf", Singular: "apiShelf", Plural: "apiShelves", Description: "A shelf.", Group: "example.org", Version: "v2beta1",
		Scope: descriptor.Global, Verbs: []descriptor.Verb{descriptor.VerbGet, descriptor.VerbCreate}, ShortNames: []string{"sh", "shlf"},
		Columns: []descriptor.Column{{Title: "WIDTH", Path: "spec.width"}, {Title: "BOARD-OWNERS", Path: "spec.boards.owner.name", Wide: true}, {Title: "NOTES", Path: "status.notes"}},
		Spec: &descriptor.Shape{Name: "ShelfSpec", Rules: []descriptor.Rule{{CEL: "self.width >= self.depth", Message: "wider than deep"}}, Fields: []descriptor.Field{
			{Name: "width", Description: "Width in mm.", Type: descriptor.TypeInt, Default: json.Number("900"), Constraint: descriptor.Constraint{Min: new(1.0), Max: new(5000.0)}},
			{Name: "depth", Type: descriptor.TypeInt, Default: json.Number("300")},
			{Name: "weight", Type: descriptor.TypeFloat, Constraint: descriptor.Constraint{Min: new(-2.5)}},
			{Name: "serial", Type: descriptor.TypeSafeInt, Immutable: true},
			{Name: "colour", Type: descriptor.TypeEnum, Enum: colour, Default: "dark-red"},
			{Name: "boards", Type: descriptor.TypeObject, Required: true, List: true, ListType: descriptor.ListMap, Keys: []string{"at"}, Shape: board, Constraint: descriptor.Constraint{MinItems: new(1), MaxItems: new(9)}},
			{Name: "codes", Type: descriptor.TypeEnum, List: true, ListType: descriptor.ListAtomic, Enum: colour, Constraint: descriptor.Constraint{MaxItems: new(4), Unique: true}},
			{Name: "owner", Type: descriptor.TypeObject, Shape: owner(1)},
			{Name: "label", Type: descriptor.TypeString, Deprecated: "use code", Constraint: descriptor.Constraint{In: []string{"a", "b"}}},
		}},
		Status: &descriptor.Shape{Name: "ShelfStatus", Fields: []descriptor.Field{
			{Name: "load", Type: descriptor.TypeFloat},
			{Name: "notes", Type: descriptor.TypeString, List: true},
		}},
	}
	schema := accepted(t, "testdata/accepted/shelf.graphqls")
	if len(schema.Kinds) != 1 {
		t.Fatalf("%d kinds", len(schema.Kinds))
	}
	if diff := cmp.Diff(want, schema.Kinds[0].Kind); diff != "" {
		t.Errorf("descriptor (-want +got):\n%s", diff)
	}
}

func TestDocumentsHaveNoKindsAndNoneOfOurDirectives(t *testing.T) {
	doc := accepted(t, "testdata/accepted/shelf.graphqls").Documents[0]
	if doc.Definitions.ForName("APIShelf") != nil {
		t.Error("the kind is still there")
	}
	for _, def := range doc.Definitions {
		for _, f := range def.Fields {
			for _, d := range f.Directives {
				if d.Name != "deprecated" {
					t.Errorf("%s.%s still has @%s", def.Name, f.Name, d.Name)
				}
			}
		}
		if len(def.Directives) > 0 {
			t.Errorf("%s still has directives", def.Name)
		}
	}
}

func TestTheDescriptorHasReferencesIndexesMapsAndVersions(t *testing.T) {
	kinds := accepted(t, "testdata/accepted/team.graphqls").Kinds
	if len(kinds) != 2 {
		t.Fatalf("%d kinds", len(kinds))
	}
	service, team := kinds[0].Kind, kinds[1].Kind
	name := func(most int) descriptor.Constraint {
		return descriptor.Constraint{MinLength: new(1), MaxLength: new(most), Format: descriptor.FormatName}
	}
	member := &descriptor.Shape{Name: "Member", Fields: []descriptor.Field{
		{Name: "team", APIName: "teamRef", Type: descriptor.TypeString, Required: true, Constraint: name(253)},
		{Name: "sentBy", Type: descriptor.TypeString, Constraint: name(253)},
	}}
	wanted := &descriptor.Shape{Name: "Origin", MinProperties: 1, Rules: []descriptor.Rule{{CEL: "self.host != 'a'", Message: "no"}}, Fields: []descriptor.Field{
		{Name: "host", Type: descriptor.TypeString, Immutable: true, Constraint: descriptor.Constraint{MinLength: new(1), MaxLength: new(20), Pattern: "^a"}},
		{Name: "ports", Type: descriptor.TypeInt, List: true, ListType: descriptor.ListSet, Constraint: descriptor.Constraint{MinItems: new(1), MaxItems: new(2), Unique: true}},
		{Name: "marks", Type: descriptor.TypeMap, Immutable: true, Constraint: descriptor.Constraint{
			MinItems: new(1), MaxItems: new(6), MaxLength: new(9), Pattern: "^a", Format: descriptor.FormatUUID, KeyMinLength: new(2), KeyMaxLength: new(7), KeyPattern: "^k",
		}},
	}}
	resource := &descriptor.Shape{Name: "ServiceResource", Fields: []descriptor.Field{
		{Name: "tier", Type: descriptor.TypeInt, Default: json.Number("3")},
		{Name: "teamRefs", Type: descriptor.TypeString, List: true, ListType: descriptor.ListSet, Constraint: descriptor.Constraint{MinLength: new(1), MaxLength: new(63), Format: descriptor.FormatName, MaxItems: new(5)}},
	}}
	spec := &descriptor.Shape{Name: "ServiceSpec", Rules: []descriptor.Rule{{CEL: "!has(self.size) || self.size >= oldSelf.size", Message: "size only grows"}}, Fields: []descriptor.Field{
		{Name: "origin", Type: descriptor.TypeObject, Shape: wanted},
		{Name: "size", Type: descriptor.TypeInt},
		{Name: "ownerRef", Type: descriptor.TypeString, Constraint: name(253), Deprecated: "use resource.teamRefs"},
		{Name: "members", Type: descriptor.TypeObject, List: true, ListType: descriptor.ListAtomic, Shape: member, Constraint: descriptor.Constraint{MaxItems: new(3)}},
		{Name: "resource", Type: descriptor.TypeObject, Shape: resource},
		{Name: "extras", Type: descriptor.TypeMap, Immutable: true, Constraint: descriptor.Constraint{
			MinItems: new(1), MaxItems: new(8), MaxLength: new(9), Pattern: "^a", KeyMinLength: new(2), KeyMaxLength: new(7), KeyPattern: "^k",
		}},
	}}
	// The type of both keeps of its constraints the maxima, where it is part of a status.
	reported := &descriptor.Shape{Name: "Origin", Fields: []descriptor.Field{
		{Name: "host", Type: descriptor.TypeString, Constraint: descriptor.Constraint{MaxLength: new(20)}},
		{Name: "ports", Type: descriptor.TypeInt, List: true, Constraint: descriptor.Constraint{MaxItems: new(2)}},
		{Name: "marks", Type: descriptor.TypeMap, Constraint: descriptor.Constraint{MaxItems: new(6), MaxLength: new(9), KeyMaxLength: new(7)}},
	}}
	status := &descriptor.Shape{Name: "ServiceStatus", Fields: []descriptor.Field{
		{Name: "id", APIName: "cloudId", Type: descriptor.TypeString, Constraint: descriptor.Constraint{MaxLength: new(1024)}},
		{Name: "notes", Type: descriptor.TypeString, List: true, Constraint: descriptor.Constraint{MaxLength: new(300), MaxItems: new(3)}},
		{Name: "counts", Type: descriptor.TypeInt, List: true, Constraint: descriptor.Constraint{MaxItems: new(4)}},
		{Name: "extras", Type: descriptor.TypeMap},
		{Name: "labels", Type: descriptor.TypeMap, Constraint: descriptor.Constraint{MaxItems: new(8), MaxLength: new(9), KeyMaxLength: new(7)}},
		{Name: "origin", Type: descriptor.TypeObject, Shape: reported},
		{Name: "origins", Type: descriptor.TypeObject, List: true, Shape: reported, Constraint: descriptor.Constraint{MaxItems: new(5)}},
	}}
	want := descriptor.Kind{
		Name: "Service", Singular: "service", Plural: "services", Group: "example.org", Version: "v1", Scope: descriptor.Namespaced,
		Verbs:            []descriptor.Verb{descriptor.VerbGet, descriptor.VerbList, descriptor.VerbWatch, descriptor.VerbCreate, descriptor.VerbUpdate, descriptor.VerbPatch, descriptor.VerbUpsert, descriptor.VerbStatus, descriptor.VerbFinalize, descriptor.VerbDelete},
		SubKinds:         []string{"web", "batch-2"},
		FilterableFields: []descriptor.FilterableField{{Path: "spec.resource.tier", Sortable: true}, {Path: "status.id"}, {Path: "status.notes"}, {Path: "spec.ownerRef"}, {Path: "spec.resource.teamRefs"}},
		References: []descriptor.Reference{
			{Path: "spec.ownerRef", Kind: "Team", Field: "owner", Guarded: true},
			{Path: "spec.members.team", Kind: "Team", Field: "team", Inverse: "memberships"},
			{Path: "spec.members.sentBy", Kind: "Team", Field: "sender"},
			{Path: "spec.resource.teamRefs", Kind: "Team", Field: "readers", Inverse: "services"},
		},
		Spec: spec, Status: status,
	}
	if diff := cmp.Diff(want, service); diff != "" {
		t.Errorf("descriptor (-want +got):\n%s", diff)
	}
	if team.Has(descriptor.VerbStatus) || !team.Has(descriptor.VerbUpsert) || len(team.Verbs) != 9 {
		t.Errorf("a kind without status has the verbs %v", team.Verbs)
	}
	for i, owner := range []string{"Service", "Member", "Member", "Service"} {
		if r := kinds[0].Refs[i]; r.Owner != owner || r.List != (i == 3) {
			t.Errorf("%s stands on %s, list %v", r.Path, r.Owner, r.List)
		}
	}
}

func TestTheNameOfAnOrderIsItsPathInCapitals(t *testing.T) {
	for path, want := range map[string]string{
		"spec.resource.mtu": "SPEC_RESOURCE_MTU", "spec.adminStateUp": "SPEC_ADMIN_STATE_UP", "status.id": "STATUS_ID",
		"spec.hostID": "SPEC_HOST_ID", "spec.a_b": "SPEC_A_B", "spec.ipv6Mode": "SPEC_IPV6_MODE",
	} {
		if got := kinds.OrderValue(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestAsManyShortNamesAndColumnsAsThereMayBeAreAccepted(t *testing.T) {
	names, columns := []string{"abcdefghijklmnop"}, ""
	for i := range 7 {
		names = append(names, fmt.Sprintf("s%d", i))
	}
	for i := range 32 {
		columns += fmt.Sprintf(" @column(title: %q, path: \"spec.size\")", fmt.Sprintf("C%02d-%s", i, strings.Repeat("X", 28)))
	}
	schema, err := load("shelf", strings.NewReplacer("plural:", `shortNames: ["`+strings.Join(names, `", "`)+`"], plural:`, ") {", ")"+columns+" {").Replace(shelf))
	if err != nil {
		t.Fatal(err)
	}
	if k := schema.Kinds[0]; len(k.ShortNames) != 8 || len(k.Columns) != 32 {
		t.Errorf("%d short names, %d columns", len(k.ShortNames), len(k.Columns))
	}
}
