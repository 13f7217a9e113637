package catalogue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/catalogue"
)

// places are those of [shelf] where nothing else is said.
func places() catalogue.Places {
	return catalogue.Places{
		Folder: "kinds",
		Fields: map[string]string{"Shelf": "kinds/shelf.graphqls:1", "Shelf.spec": "kinds/shelf.graphqls:2", "Shelf.spec.width": "kinds/shelf.graphqls:6", "Shelf.spec.label": "kinds/shelf.graphqls:7", "Shelf.spec.colour": "kinds/shelf.graphqls:8"},
		Types:  map[string]string{"Shelf.spec": "kinds/shelf.graphqls:5", "Shelf.spec.colour": "kinds/shelf.graphqls:20"},
	}
}

func TestPlace_ARefusalSaysWhereAndWhatWouldBeLost(t *testing.T) {
	at := map[string]string{
		"another type": "kinds/shelf.graphqls:6: ", "a field newly required": "kinds/shelf.graphqls:7: ",
		"a field removed": "kinds/shelf.graphqls:5: ", "an enum value removed": "kinds/shelf.graphqls:20: ",
	}
	for name, place := range at {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			_ = f.accept(shelf(nil), false)
			f.put("a", `{"spec":{"width":1}}`)
			f.places = places()
			c := changes()[name]
			err := f.accept(shelf(c.change), false)
			concerned := "resources of the kind: 1"
			if name == "a field removed" {
				concerned = "resources that have it: 0"
			}
			want := fmt.Sprintf("%s%s; %s", place, c.want[len(c.want)-1], concerned)
			if err == nil || len(err.Reasons) != 1 || err.Reasons[0] != want {
				t.Errorf("it says %v; want %s", err, want)
			}
		})
	}
}

func TestPlace_AKindThatIsGoneIsToldOfTheFolder(t *testing.T) {
	f := setup(t)
	_ = f.accept(shelf(nil), false)
	f.put("a", `{"spec":{"width":1}}`)
	f.places = catalogue.Places{Folder: "kinds", Fields: map[string]string{"Rack": "kinds/rack.graphqls:1"}}
	err := f.accept(shelf(changes()["another kind"].change), false)
	if err == nil || !strings.Contains(err.Error(), "\n  kinds: kind Shelf is gone: its resources are kept and not served (breaking); resources of the kind: 1\n") {
		t.Errorf("it says %v", err)
	}
}

func TestPlace_AScopeIsRefusedAtTheKind(t *testing.T) {
	f := setup(t)
	_ = f.accept(shelf(nil), false)
	f.put("a", `{"spec":{"width":1}}`)
	f.places = places()
	err := f.accept(shelf(changes()["another scope"].change), true)
	if err == nil || !strings.Contains(err.Error(), "kinds/shelf.graphqls:1: kind Shelf has NAMESPACED resources (resources of the kind: 1)") {
		t.Errorf("it says %v", err)
	}
}
