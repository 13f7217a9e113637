package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
)

// storyConfig of a story.
type storyConfig struct {
	// Path of the file, within testdata.
	Path string
	// Title is the first line.
	Title string
	// Command writes the file anew. It stands under the title, and in what is said of a difference.
	Command string
	// Update writes the file instead of comparing it.
	Update bool
	// Volatile are keys of JSON whose values differ from run to run, with the word
	// that stands for them: of "uid": "uid" the first value is shown as <uid 1>.
	// Wherever such a value comes again, it is shown as the same.
	Volatile map[string]string
	// Fields are the same for lines of a name and a value, as in HTTP: of
	// "Last-Event-ID": "cursor" the line is shown as Last-Event-ID: <cursor 1>.
	Fields map[string]string
}

// story is a transcript that a test writes: what client and server said, as a text that a reviewer
// reads like a story. It is compared with the one that was kept when the test ends.
type story struct {
	text     strings.Builder
	volatile map[string]string
	fields   map[string]string
	keyed    *regexp.Regexp
	lined    *regexp.Regexp
	// shown are the values that were seen, in their order.
	shown []shownValue
}

// shownValue is what is shown for a text that differs from run to run.
type shownValue struct{ text, word, mark string }

// beginStory begins a story.
func beginStory(t testing.TB, cfg storyConfig) *story {
	t.Helper()
	s := &story{
		volatile: cfg.Volatile, keyed: regexp.MustCompile(`"(` + anyKey(cfg.Volatile) + `)"( *: *)"([^"\\]+)"`),
		fields: cfg.Fields, lined: regexp.MustCompile(`(?m)^(` + anyKey(cfg.Fields) + `): ([^ \n]+)$`),
	}
	s.text.WriteString(cfg.Title + "\n(written by: " + cfg.Command + ")\n")
	t.Cleanup(func() {
		if !t.Failed() {
			finishStory(t, cfg, s.text.String())
		}
	})
	return s
}

// anyKey is an expression that matches the keys of a map.
func anyKey(words map[string]string) string {
	var out []string
	for k := range words {
		out = append(out, regexp.QuoteMeta(k))
	}
	slices.Sort(out)
	return strings.Join(out, "|")
}

func finishStory(t testing.TB, cfg storyConfig, text string) {
	if cfg.Update {
		if err := os.MkdirAll(filepath.Dir(cfg.Path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(cfg.Path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	kept, err := os.ReadFile(cfg.Path)
	if err != nil {
		t.Fatalf("%v; write it by: %s", err, cfg.Command)
	}
	if diff := udiff.Unified(cfg.Path, "now", string(kept), text); diff != "" {
		t.Errorf("something else is said now; if that is meant: %s\n%s", cfg.Command, diff)
	}
}

// Tell adds a paragraph for the reader.
func (s *story) Tell(format string, args ...any) {
	if !strings.HasSuffix(s.text.String(), "\n\n") {
		s.text.WriteString("\n")
	}
	fmt.Fprintf(&s.text, "%s\n\n", s.mask(fmt.Sprintf(format, args...)))
}

// Sent adds what a client sends. JSON is laid out.
func (s *story) Sent(text string) { s.add("> ", text) }

// Received adds what a client gets. JSON is laid out.
func (s *story) Received(text string) { s.add("< ", text) }

// String is the story so far.
func (s *story) String() string { return s.text.String() }

func (s *story) add(prefix, text string) {
	for line := range strings.SplitSeq(strings.TrimRight(layout(s.mask(text)), "\n"), "\n") {
		s.text.WriteString(strings.TrimRight(prefix+line, " ") + "\n")
	}
}

// mask replaces what differs from run to run: first what stands under a volatile
// key, then the same values anywhere else.
func (s *story) mask(text string) string {
	text = s.keyed.ReplaceAllStringFunc(text, func(found string) string {
		m := s.keyed.FindStringSubmatch(found)
		return fmt.Sprintf("%q%s%q", m[1], m[2], s.mark(s.volatile[m[1]], m[3]))
	})
	text = s.lined.ReplaceAllStringFunc(text, func(found string) string {
		m := s.lined.FindStringSubmatch(found)
		return m[1] + ": " + s.mark(s.fields[m[1]], m[2])
	})
	longest := slices.Clone(s.shown)
	slices.SortStableFunc(longest, func(a, b shownValue) int { return len(b.text) - len(a.text) })
	for _, v := range longest {
		text = strings.ReplaceAll(text, v.text, v.mark)
	}
	return text
}

// mark is what is shown for a value.
func (s *story) mark(word, text string) string {
	n := 1
	for _, v := range s.shown {
		if v.word != word {
			continue
		}
		if n++; v.text == text {
			return v.mark
		}
	}
	v := shownValue{text, word, fmt.Sprintf("<%s %d>", word, n)}
	s.shown = append(s.shown, v)
	return v.mark
}
