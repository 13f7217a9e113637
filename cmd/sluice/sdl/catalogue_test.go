package sdl

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/release"
)

const team = `type Team @resource(plural: "teams", group: "example.org", version: "v1", scope: NAMESPACED) { spec: TeamSpec! }
type TeamSpec { size: Int }
`

func TestRead_TheEmbeddedCatalogue(t *testing.T) {
	c, err := Read("")
	if err != nil {
		t.Fatal(err)
	}
	first := release.Number{Major: 1}
	if len(c.Kinds) == 0 || len(c.Stored) != len(c.Kinds) || c.Previous != nil || !c.Complete() {
		t.Errorf("%d kinds, %d stored, complete: %v", len(c.Kinds), len(c.Stored), c.Complete())
	}
	if !c.IsCandidate(first) || c.HasReleased() {
		t.Errorf("v1.0 is a candidate: %v, others were released: %v", c.IsCandidate(first), c.HasReleased())
	}
	if err := c.CheckReleased(); err != nil {
		t.Error(err)
	}
	if _, err := c.Released(release.Number{Major: 7, Minor: 1}); err == nil || err.Error() != "v7.1 was not released; these versions were: v1.0" {
		t.Errorf("%v", err)
	}
}

func TestFromTexts_SaysWhatIsWrongAndWhere(t *testing.T) {
	_, err := FromTexts(map[string]string{"team.graphqls": strings.Replace(team, "Int", "Integer", 1)}, "kinds")
	if err == nil || !strings.Contains(err.Error(), "kinds/team.graphqls:2") || !strings.Contains(err.Error(), "Integer") {
		t.Errorf("%v", err)
	}
}

func TestCatalogue_ChangesHaveTheirPlaces(t *testing.T) {
	read := func(sdl string) Catalogue {
		t.Helper()
		c, err := FromTexts(map[string]string{"team.graphqls": sdl}, "kinds")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	was, is := read(team), read(strings.Replace(team, "size: Int", "size: Int\n  floor: Int", 1))
	changes := is.Changes(was)
	if len(changes) != 1 || !strings.Contains(changes[0].String(), "floor") || was.Files == is.Files {
		t.Errorf("%v", changes)
	}
	if same := read(team); len(same.Changes(was)) != 0 || same.Files != was.Files {
		t.Errorf("%v", same.Changes(was))
	}
}
