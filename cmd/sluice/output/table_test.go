package output_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/graph/client"
)

// columnsOf are the places at which the columns of lines begin, seen as a terminal
// shows them: a column begins after a gap of two spaces or more.
func columnsOf(line string) []int {
	var out []int
	place, gap := 0, 2
	for _, r := range line {
		if r == ' ' {
			gap++
		} else {
			if gap >= 2 {
				out = append(out, place)
			}
			gap = 0
		}
		place += output.Width(string(r))
	}
	return out
}

func TestWideCharactersDoNotBreakATable(t *testing.T) {
	var b strings.Builder
	table := output.NewTable(&b, []string{"NAME", "OWNER", "AGE"})
	table.Cut = true
	for _, owner := range []string{"ada", "王小明", "한국어", "e\u0301mile", "🚀", "👩‍👩‍👧", output.Cell(strings.Repeat("宽", 100))} {
		table.Texts("n", output.Cell(owner), "1s")
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	for _, line := range lines {
		if before, _, _ := strings.Cut(line, "1s"); strings.HasSuffix(line, "1s") && output.Width(before) != output.Width(lines[0])-len("AGE") {
			t.Errorf("the last column of %q begins at %d, its title at %d", line, output.Width(before), output.Width(lines[0])-len("AGE"))
		}
	}
	if w := output.Width(lines[0]); w != len("NAME")+64+len("AGE")+2*3-1 {
		t.Errorf("a table of %d places", w)
	}
}

func TestPrinter_CutsNoNameAndNothingThatDoesNotGoToATerminal(t *testing.T) {
	name, title := "n"+strings.Repeat("a", 252), strings.Repeat("long text ", 20)
	k := shelf()
	k.Columns = []client.Column{{Title: "TITLE", Path: "spec.title"}}
	r := resource(name, "900")
	r.Spec = json.RawMessage(`{"title": "` + title + `"}`)
	custom, err := output.ParseFormat("custom-columns=NAME:.metadata.name,TITLE:.spec.title")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		format   output.Format
		terminal bool
		cut      bool
	}{{output.Format{Form: output.FormTable}, true, true}, {output.Format{Form: output.FormTable}, false, false}, {output.Format{Form: output.FormWide}, false, false}, {custom, true, false}, {custom, false, false}} {
		var b strings.Builder
		p := output.NewPrinter(&b, c.format, output.Options{Now: now, Terminal: c.terminal})
		if err := errors.Join(p.Print(k, r), p.End()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), name) {
			t.Errorf("%+v: the name is cut:\n%s", c, b.String())
		}
		if whole := strings.Contains(b.String(), title); whole == c.cut {
			t.Errorf("%+v: the title is whole: %v\n%s", c, whole, b.String())
		}
	}
}

func TestALongTableIsWrittenInBlocksThatKeepTheirColumns(t *testing.T) {
	var b strings.Builder
	p := output.NewPrinter(&b, output.Format{Form: output.FormTable}, output.Options{Now: now})
	for i := range 1200 {
		if err := p.Print(shelf(), resource(fmt.Sprintf("resource-%04d", i), "900")); err != nil {
			t.Fatal(err)
		}
		if i == 1100 && !strings.Contains(b.String(), "resource-0999") {
			t.Error("everything is held until the end")
		}
	}
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 1201 || strings.Count(b.String(), "NAME") != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		if got := columnsOf(line); !slices.Equal(got, columnsOf(lines[0])) {
			t.Fatalf("%q: columns at %v", line, got)
		}
	}
}

func TestATableHasNoTitlesAndNoColoursUnlessItIsToldSo(t *testing.T) {
	write := func(noHeaders, colours bool) string {
		var b strings.Builder
		table := output.NewTable(&b, []string{"NAME", "AVAILABLE", "AGE"})
		table.NoHeaders, table.Colours = noHeaders, colours
		table.Row(output.Text{Text: "a"}, output.Text{Text: "False", Colour: output.Red}, output.Text{Text: "1s"})
		if err := table.Flush(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := write(false, false); got != "NAME   AVAILABLE   AGE\na      False       1s\n" {
		t.Errorf("%q", got)
	}
	if got := write(true, true); got != "a   \x1b[31mFalse\x1b[0m   1s\n" {
		t.Errorf("%q", got)
	}
}

func TestATableWithoutRowsWritesNothing(t *testing.T) {
	var b strings.Builder
	if err := output.NewTable(&b, []string{"NAME"}).Flush(); err != nil || b.Len() > 0 {
		t.Errorf("%q %v", b.String(), err)
	}
}
