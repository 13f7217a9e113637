package output

import (
	"bufio"
	"io"
	"strings"
)

// Colour of a text in a table.
type Colour string

// The colours, which say how things are and decorate nothing.
const (
	Plain  Colour = ""
	Red    Colour = "\x1b[31m"
	Green  Colour = "\x1b[32m"
	Yellow Colour = "\x1b[33m"
)

// Paint returns a text in a colour.
func (c Colour) Paint(s string) string {
	if c == Plain {
		return s
	}
	return string(c) + s + "\x1b[0m"
}

// Text is one cell of a table. Stored values must go through [Cell] first.
type Text struct {
	Text   string
	Colour Colour
}

// Table writes rows with aligned columns. It holds a block of
// rows, so that a list of any length needs little memory; a later block is never
// narrower than an earlier one.
type Table struct {
	// Titles of the columns.
	Titles []string
	// NoHeaders leaves the titles out.
	NoHeaders bool
	// Colours are shown.
	Colours bool

	w      io.Writer
	begun  bool
	widths []int
	rows   [][]Text
}

// tableBlock is how many rows are held.
const tableBlock = 500

// gap separates two columns.
const gap = "   "

// NewTable returns a table without rows. Nothing is written before the first one.
func NewTable(w io.Writer, titles []string) *Table { return &Table{Titles: titles, w: w} }

// Reserve makes a column at least as wide as a number of characters, for what comes later.
func (t *Table) Reserve(column, width int) {
	if t.widths == nil {
		t.widths = make([]int, len(t.Titles))
	}
	t.widths[column] = max(t.widths[column], width)
}

// Row adds a row; it has as many cells as there are titles.
func (t *Table) Row(cells ...Text) error {
	t.rows = append(t.rows, cells)
	if len(t.rows) < tableBlock {
		return nil
	}
	return t.Flush()
}

// Flush writes the rows that are held.
func (t *Table) Flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	rows := t.rows
	if !t.begun && !t.NoHeaders {
		head := make([]Text, len(t.Titles))
		for i, title := range t.Titles {
			head[i] = Text{Text: title}
		}
		rows = append([][]Text{head}, rows...)
	}
	t.begun, t.rows = true, nil
	if t.widths == nil {
		t.widths = make([]int, len(t.Titles))
	}
	for r, row := range rows {
		for len(row) > 1 && row[len(row)-1].Text == "" {
			row = row[:len(row)-1] // nothing stands behind the last text
		}
		if rows[r] = row; len(row) == 1 && len(t.Titles) > 1 {
			continue // a heading may reach over several columns
		}
		for i, c := range row {
			t.widths[i] = max(t.widths[i], Width(c.Text))
		}
	}
	w := bufio.NewWriter(t.w)
	for _, row := range rows {
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
