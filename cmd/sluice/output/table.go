package output

import (
	"bufio"
	"io"
	"slices"
	"strings"
)

// Colour is the colour of a text in a table.
type Colour string

// The colours of texts. Each has one meaning.
const (
	Plain  Colour = ""
	Red    Colour = "\x1b[31m"
	Green  Colour = "\x1b[32m"
	Yellow Colour = "\x1b[33m"
)

// colourOf returns the colour for a word in a table. The word is the status of a condition (True is good), the state of
// a reference, or the type of a change.
func colourOf(word string) Colour {
	switch word {
	case "True", "BOUND":
		return Green
	case "Unknown", "NOT_READY":
		return Yellow
	case "False", "MISSING", "DELETING", "DELETED":
		return Red
	}
	return Plain
}

// Paint returns a text with escapes for the colour.
func (c Colour) Paint(s string) string {
	if c == Plain {
		return s
	}
	return string(c) + s + "\x1b[0m"
}

// Text is the text of a cell of a table. [Cell] must be called for stored values first.
type Text struct {
	Text   string
	Colour Colour
	// Whole prevents the text from being cut. It is set for names.
	Whole bool
}

// Table writes rows with aligned columns. It keeps the rows until they are flushed. After the first flush, columns
// never become narrower.
type Table struct {
	// Titles are the titles of the columns.
	Titles []string
	// Indent is written before each line.
	Indent string
	// NoHeaders leaves out the titles.
	NoHeaders bool
	// Colours reports whether to use colours.
	Colours bool
	// Cut limits the width of texts to 64, unless they are Whole.
	Cut bool

	w      io.Writer
	begun  bool
	widths []int
	rows   [][]Text
}

// gap separates two columns.
const gap = "   "

// NewTable returns an empty table. Nothing is written before there is a row.
func NewTable(w io.Writer, titles []string) *Table { return &Table{Titles: titles, w: w} }

// Reserve sets a minimum width of a column, for later rows.
func (t *Table) Reserve(column, width int) {
	if t.widths == nil {
		t.widths = make([]int, len(t.Titles))
	}
	t.widths[column] = max(t.widths[column], width)
}

// Row adds a row. It may not have more cells than there are titles.
func (t *Table) Row(cells ...Text) { t.rows = append(t.rows, cells) }

// Texts adds a row of texts without colours.
func (t *Table) Texts(texts ...string) { t.Row(plain(texts)...) }

func plain(texts []string) []Text {
	cells := make([]Text, len(texts))
	for i, text := range texts {
		cells[i].Text = text
	}
	return cells
}

// Flush writes the rows that were not written yet.
func (t *Table) Flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	rows := t.rows
	if !t.begun && !t.NoHeaders {
		rows = slices.Insert(rows, 0, plain(t.Titles))
	}
	t.begun, t.rows = true, nil
	if t.widths == nil {
		t.widths = make([]int, len(t.Titles))
	}
	for r, row := range rows {
		for len(row) > 1 && row[len(row)-1].Text == "" {
			row = row[:len(row)-1] // empty cells at the end of a row are not written
		}
		rows[r] = row
		if len(row) == 1 && len(t.Titles) > 1 {
			continue // a heading may reach over several columns
		}
		for i, c := range row {
			if t.Cut && !c.Whole {
				row[i].Text = cut(c.Text)
				c = row[i]
			}
			t.widths[i] = max(t.widths[i], Width(c.Text))
		}
	}
	w := bufio.NewWriter(t.w)
	for _, row := range rows {
		_, _ = w.WriteString(t.Indent)
		for i, c := range row {
			text := c.Text
			if t.Colours {
				text = c.Colour.Paint(text)
			}
			_, _ = w.WriteString(text)
			if i < len(row)-1 {
				_, _ = w.WriteString(strings.Repeat(" ", t.widths[i]-Width(c.Text)) + gap)
			}
		}
		_ = w.WriteByte('\n')
	}
	return w.Flush()
}
