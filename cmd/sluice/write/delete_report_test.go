package write

import "testing"

func TestNoteOf_SaysThatADeletionCannotBeCancelled(t *testing.T) {
	for _, c := range []struct {
		state, held string
		dry         bool
		want        string
	}{
		{state: "DELETED"},
		{state: "DELETED", dry: true},
		{"PENDING", "subnet/a holds it", false, ": subnet/a holds it; the deletion cannot be cancelled"},
		{"FINALIZING", "finalizer x.y/z holds it", true, ": finalizer x.y/z holds it; once requested, the deletion cannot be cancelled"},
		{"FINALIZING", "", false, ": the deletion cannot be cancelled"},
	} {
		if got := noteOf(c.state, c.held, c.dry); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
