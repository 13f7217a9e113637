package failure_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicegw/sluice/backend/service/failure"
)

var update = flag.Bool("update", false, "write the generated documents")

func TestError_TheListOfErrorsIsThatOfTheCode(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "errors.md")
	want := failure.Document()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the code says; write it with go test ./backend/service/failure -run ListOfErrors -update", path)
	}
}
