package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/gateway"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// copyTime is the maximum time that a gateway may take to copy its store before it sends the first byte.
const copyTime = time.Hour

// backupFlags are the flags of a backup.
type backupFlags struct {
	gatewayRequest
	to string
}

// BackupCommand writes a copy of the embedded store of a running gateway to a file.
func BackupCommand(std terminal.Streams) *cobra.Command {
	var f backupFlags
	cmd := &cobra.Command{
		Use:   "backup --to FILE",
		Short: "Write a copy of the embedded store to a file while the gateway serves",
		Long: "Write a copy of the embedded store of a running gateway to a file. It has every change that was acknowledged before.\n" +
			"The copy is checked as sluice check does, and only then gets its name; until then it is FILE.part. To restore it,\n" +
			"stop the gateway, put the file in the place of sluice.db in its folder, and start the gateway.\n\n" +
			"The gateway is asked over its admin socket, or over the network with --server or --context: that needs the verb\n" +
			"EXPORT, and a gateway with encryption-keys-file. It makes the copy in its own folder first, so its disk needs room\n" +
			"for it.",
		Example: "  sluice backup --to backup.db --data ./sluice-data\n  sluice backup --to backup.db --server https://gateway.example.com:8080",
		Args:    command.Args(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd, std) },
	}
	f.registerSocket(cmd)
	f.registerNetwork(cmd)
	cmd.Flags().Lookup("server").Usage = "URL of the gateway, to ask it over the network; that needs the verb EXPORT"
	cmd.Flags().StringVar(&f.to, "to", "", "file to write (required)")
	return cmd
}

func (f *backupFlags) run(cmd *cobra.Command, std terminal.Streams) error {
	if f.to == "" {
		return exit.Usage(errors.New("to: a file is wanted: --to FILE"))
	}
	c, err := f.client(cmd)
	if err != nil {
		return err
	}
	if err := checkTarget(cmd, f.to, "data"); err != nil {
		return err
	}
	source, err := c.Download(cmd.Context(), client.DownloadRequest{Path: gateway.BackupPath, Preparation: copyTime})
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	part, err := createPart("to", f.to)
	if err != nil {
		return err
	}
	size, err := saveBackup(part, source, std)
	if err == nil {
		err = part.complete()
	}
	if err != nil {
		part.discard()
		return err
	}
	read, err := checkBackup(cmd.Context(), part.path+partSuffix, std)
	if err != nil {
		return err
	}
	if err := part.name(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.Out, "%s: %d bytes with %s and %s\n", output.Printable(f.to), size,
		output.Plural(int(read.Records), "record"), output.Plural(int(read.Changes), "change"))
	return err
}

// saveStep is the number of bytes after which a backup is synced.
const saveStep = 4 << 20

type syncedFile interface {
	io.Writer
	Sync() error
}

// saveBackup writes a backup from a gateway to a file. It syncs the file at intervals: a single sync of gigabytes at
// the end would delay the commits of a gateway on the same disk.
func saveBackup(to syncedFile, from io.Reader, std terminal.Streams) (size int64, err error) {
	defer std.Show("")
	for err == nil {
		var n int64
		n, err = io.CopyN(to, from, saveStep)
		size += n
		if err == nil {
			err = to.Sync()
		}
		std.Show(fmt.Sprintf("%d MiB ...", size>>20))
	}
	if !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("backup: %w", err)
	}
	return size, nil
}

// checkBackup reads a whole backup, prints what is damaged or missing, and returns how much it has read. If anything is
// damaged, it returns an error. The store then has the same damage.
func checkBackup(ctx context.Context, path string, std terminal.Streams) (read backend.Verified, err error) {
	store, err := gateway.OpenReader(ctx, path, config.Store{}, zap.NewNop())
	if err != nil {
		return read, fmt.Errorf("the copy cannot be opened, and stays in %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	errs := terminal.Streams{Out: std.Err, Err: std.Err}
	report := checkReport{std: errs}
	read, err = store.Verify(ctx, backend.Verification{Found: report.found, Progress: report.progress})
	if err == nil && read.Damaged > 0 {
		err = fmt.Errorf("%d parts of the store are damaged or missing; the copy stays in %s", read.Damaged, path)
	}
	return read, err
}
