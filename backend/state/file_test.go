package state

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/sluicegw/sluice/backend"
)

// readAll reads a file to its end, and returns how many lines it has.
func readAll(file []byte) (lines int, err error) {
	r, err := NewReader(bytes.NewReader(file))
	for err == nil {
		if _, err = r.Next(); err == nil {
			lines++
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return lines, err
}

func TestReader_ReadsWhatAnExportHasWritten(t *testing.T) {
	store := openMemory(t)
	keys := ring(t, "k")
	furnish(t, store, keys)
	file := export(t, store, keys, Sealed)
	lines, err := readAll(file)
	if err != nil || lines != len(unzipped(t, file))-2 {
		t.Errorf("%d lines, %v", lines, err)
	}
	r, err := NewReader(bytes.NewReader(file))
	if err != nil || r.Header().Key != "k" || r.Header().Secrets != Sealed || r.Header().Catalogue == "" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestReader_RefusesAFileThatIsCutAnywhere(t *testing.T) {
	store := openMemory(t)
	furnish(t, store, ring(t, "k"))
	file := export(t, store, ring(t, "k"), Sealed)
	for n := range file {
		if _, err := readAll(file[:n]); !errors.Is(err, ErrCut) {
			t.Fatalf("cut at %d of %d bytes: %v", n, len(file), err)
		}
	}
	if _, err := readAll(append(bytes.Clone(file), 0)); !errors.Is(err, ErrChanged) {
		t.Errorf("one byte more: %v", err)
	}
}

func TestReader_RefusesAFileOfWhichOneByteIsChanged(t *testing.T) {
	store := openMemory(t)
	furnish(t, store, ring(t, "k"))
	file := export(t, store, ring(t, "k"), Sealed)
	for i := range file {
		for _, flip := range []byte{1, 0x80} {
			changed := bytes.Clone(file)
			changed[i] ^= flip
			_, err := readAll(changed)
			detected := errors.Is(err, ErrCut) || errors.Is(err, ErrChanged) || errors.Is(err, backend.ErrFormat)
			if !detected {
				t.Fatalf("byte %d of %d: %v", i, len(file), err)
			}
		}
	}
}

func TestReader_TellsTheErrorOfItsSource(t *testing.T) {
	broken := errors.New("broken pipe")
	file := export(t, openMemory(t), nil, Sealed)
	for _, n := range []int{0, 20} {
		r, err := NewReader(io.MultiReader(bytes.NewReader(file[:n]), &failing{broken}))
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

// failing is a reader that fails.
type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func TestReader_RefusesWhatIsNoExport(t *testing.T) {
	for _, text := range []string{"kind: Net\n", "{}", "\x1f\x8c..........."} {
		if _, err := readAll([]byte(text)); !errors.Is(err, backend.ErrFormat) && !errors.Is(err, ErrCut) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzDecodeLine(f *testing.F) {
	for _, text := range []string{
		`{"kind":"Net","name":"a","uid":"u","createdAt":"2025-01-01T00:00:00Z","updatedAt":"2025-01-01T00:00:00.5Z","body":{"spec":{}}}`,
		`{"kind":"Net","namespace":"n","name":"a","later":true,"deleted":true,"revision":"1-2"}`,
		`{"kind":"Net","name":"a","uid":"u","createdAt":"2025-01-01T00:00:00Z","updatedAt":"2025-01-01T00:00:00Z","sealed":"cw==","refs":[{"kind":"A","name":"b","bound":true}]}`,
		`{"kind":"Net","name":"a","unreadable":true}`, `{}`, `null`, `[]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := decodeLine(text)
		if err != nil {
			return
		}
		again, err := appendLine(nil, l)
		if err != nil {
			return // names that are not text
		}
		if n := bytes.Count(again, []byte("\n")); n != 1 || again[len(again)-1] != '\n' {
			t.Fatalf("%q is written as %q", text, again)
		}
		back, err := decodeLine(again[:len(again)-1])
		if err != nil {
			t.Fatalf("%q: %v", again, err)
		}
		if once, err := appendLine(nil, back); err != nil || !bytes.Equal(once, again) {
			t.Fatalf("%q becomes %q, %v", again, once, err)
		}
	})
}

func FuzzReader(f *testing.F) {
	store := openMemory(f)
	var file bytes.Buffer
	if _, err := Export(f.Context(), ExportConfig{Store: store}, &file); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Add(file.Bytes()[:file.Len()/2])
	f.Add(endMember([]byte("{}\n")))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := readAll(text); err == nil && !bytes.Equal(text, file.Bytes()) {
			t.Logf("another whole file of %d bytes", len(text))
		}
	})
}
