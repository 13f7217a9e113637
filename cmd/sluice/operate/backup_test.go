package operate

import (
	"bytes"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// pendingFile counts the bytes that are not synced.
type pendingFile struct {
	bytes.Buffer
	pending, most int
}

func (f *pendingFile) Write(p []byte) (int, error) {
	f.pending += len(p)
	f.most = max(f.most, f.pending)
	return f.Buffer.Write(p)
}

func (f *pendingFile) Sync() error {
	f.pending = 0
	return nil
}

func TestSaveBackup_LeavesLittleToTheLastSync(t *testing.T) {
	var shown bytes.Buffer
	for _, length := range []int{0, 1, saveStep, 3*saveStep + 1} {
		want := bytes.Repeat([]byte("sluice"), length/6+1)[:length]
		var file pendingFile
		size, err := saveBackup(&file, bytes.NewReader(want), terminal.Streams{Out: &shown, Err: &shown})
		if err != nil || size != int64(length) || !bytes.Equal(file.Bytes(), want) {
			t.Errorf("%d bytes: %d saved, %v", length, size, err)
		}
		if file.most > saveStep {
			t.Errorf("%d bytes: %d of them wait for one sync", length, file.most)
		}
	}
}
