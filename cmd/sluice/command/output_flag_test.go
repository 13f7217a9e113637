package command_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func TestOutputFlag_PrintsDataInItsForm(t *testing.T) {
	data := map[string]any{"name": "a"}
	table := command.Table{Titles: []string{"NAME"}, Rows: [][]string{{"a"}}}
	for form, want := range map[command.OutputFlag]string{
		"table": "NAME\na\n",
		"json":  "{\n  \"name\": \"a\"\n}\n",
		"yaml":  "name: a\n",
	} {
		var out strings.Builder
		std := terminal.Streams{Out: &out}
		if err := form.Print(std, data, table.To(std)); err != nil || out.String() != want {
			t.Errorf("%s: %q %v, want %q", form, out.String(), err, want)
		}
	}
}
