package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writeStory writes a story in which what differs from run to run is other each time.
func writeStory(t testing.TB, path string, update bool, run int) {
	r := func(n int) string { return fmt.Sprintf("%d-%d", run*run*1_000_000, n) }
	s := beginStory(t, storyConfig{
		Path: path, Title: "A story", Command: "go test -update", Update: update,
		Volatile: map[string]string{"revision": "revision", "currentRevision": "revision", "cursor": "cursor"},
		Fields:   map[string]string{"id": "cursor"},
	})
	s.Tell("A client asks.")
	s.Tell("It asks.")
	s.Sent("{ a }")
	s.Received(`{"a":{"revision":"` + r(1) + `","cursor":"` + r(1) + `"},"b":"` + strings.Repeat("long ", 20) + `","c":[{"d":"1, 2: \"x\""},-1.5,null,true,[],{}]}`)
	s.Received(`{"text":"one\n  \"two\"\n"}`)
	s.Received("event: next\nid: " + r(1) + "\ndata: {\"id\":\"kept\"}\n")
	s.Sent("after " + r(1))
	s.Received(`{"message":"it is ` + r(2) + `, was ` + r(1) + `","currentRevision":"` + r(2) + `","revision":"` + r(1) + `"}`)
}

const writtenStory = `A story
(written by: go test -update)

A client asks.

It asks.

> { a }
< {
<   "a": {"revision": "<revision 1>", "cursor": "<cursor 1>"},
<   "b": "long long long long long long long long long long long long long long long long long long long long ",
<   "c": [{"d": "1, 2: \"x\""}, -1.5, null, true, [], {}]
< }
< {
<   "text": """
<     one
<       "two"
<   """
< }
< event: next
< id: <cursor 1>
< data: {"id": "kept"}
> after <revision 1>
< {
<   "message": "it is <revision 2>, was <revision 1>",
<   "currentRevision": "<revision 2>",
<   "revision": "<revision 1>"
< }
`

func TestAStoryIsTheSameInEveryRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "story.txt")
	for run := range 3 {
		t.Run(fmt.Sprint(run), func(t *testing.T) { writeStory(t, path, run == 0, run+1) })
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(writtenStory, string(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// observed notes what a story says of the test that it stands in.
type observed struct {
	testing.TB
	failed  string
	cleanup func()
}

func (o *observed) Helper()                        {}
func (o *observed) Failed() bool                   { return o.failed != "" }
func (o *observed) Cleanup(f func())               { o.cleanup = f }
func (o *observed) Errorf(format string, a ...any) { o.failed = fmt.Sprintf(format, a...) }

func TestADifferenceIsShownWithTheCommandThatAcceptsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "story.txt")
	if err := os.WriteFile(path, []byte(strings.Replace(writtenStory, "A client asks", "Someone asks", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &observed{TB: t}
	writeStory(o, path, false, 1)
	o.cleanup()
	for _, part := range []string{"if that is meant: go test -update", "-Someone asks.", "+A client asks."} {
		if !strings.Contains(o.failed, part) {
			t.Errorf("it lacks %q:\n%s", part, o.failed)
		}
	}
}
