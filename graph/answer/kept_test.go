package answer_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/sluicegw/sluice/graph/answer"
)

// keep returns a kept answer.
func keep(t *testing.T, body string) *answer.Kept {
	t.Helper()
	c := answer.New(answer.Config{Bytes: 8 << 20})
	execute(t, c, key, same(), made(body))
	execute(t, c, key, same(), made(body))
	kept, _ := c.Find(t.Context(), key, same())
	if kept == nil {
		t.Fatal("it is not kept")
	}
	return kept
}

func TestKept_Tag(t *testing.T) {
	a, b := keep(t, "a"), keep(t, "b")
	if a.Tag() != answer.Tag([]byte("a")) || a.Tag() == b.Tag() || a.Tag() != keep(t, "a").Tag() {
		t.Errorf("tags are %s and %s", a.Tag(), b.Tag())
	}
}

func TestKept_Zipped(t *testing.T) {
	body := string(bytes.Repeat([]byte(`{"name":"net-a"},`), 1000))
	zip, err := gzip.NewReader(bytes.NewReader(keep(t, body).Zipped()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(zip)
	if err != nil || string(got) != body {
		t.Errorf("%d bytes of %d: %v", len(got), len(body), err)
	}
	noise := make([]byte, 10_000)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	if got := keep(t, string(noise)).Zipped(); got != nil {
		t.Errorf("%d bytes are kept of what does not shrink", len(got))
	}
}
