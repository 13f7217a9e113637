// Command sluice is the gateway and its command line.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/auth"
	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/operate"
	"github.com/sluicegw/sluice/cmd/sluice/read"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/cmd/sluice/version"
	"github.com/sluicegw/sluice/cmd/sluice/write"
)

func main() {
	// Sampling allocations would make writes one to two percent slower. A gateway with debug-listen turns it on again.
	runtime.MemProfileRate = 0
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the program at once
	code := command.Run(ctx, newRoot, os.Args[1:], terminal.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}

// newRoot returns the root command. To add a command, write it in a file in read, write, auth or operate, and add it
// here.
func newRoot(std terminal.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "A GraphQL gateway over resource services",
		Long: "A GraphQL gateway over resource services, and its command line.\n\n" +
			"Exit codes: 0 done; 1 failed, or the answer is no; 2 the command line, the environment or a file is wrong;\n" +
			"3 a resource that was named does not exist, and nothing else went wrong;\n" +
			"4 resources that the gateway cannot read were left out of a change by labels, and nothing else went wrong.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version.Text(),
	}
	root.SetVersionTemplate(version.Line())
	root.AddCommand(
		read.APIResourcesCommand(std),
		read.DescribeCommand(std),
		read.DiffCommand(std),
		read.ExplainCommand(std),
		read.GetCommand(std),
		read.RevealCommand(std),
		read.TreeCommand(std),
		read.WaitCommand(std),
		read.WatchCommand(std),

		write.AnnotateCommand(std),
		write.ApplyCommand(std),
		write.ControlCommand(std),
		write.CreateCommand(std),
		write.DeleteCommand(std),
		write.EditCommand(std),
		write.FinalizeCommand(std),
		write.LabelCommand(std),
		write.PatchCommand(std),

		auth.AuthCommand(std),
		auth.ContextCommand(std),
		auth.LoginCommand(std),
		auth.LogoutCommand(std),

		operate.BackupCommand(std),
		operate.CatalogueCommand(std),
		operate.CheckCommand(std),
		operate.ConfigCommand(std),
		operate.ExportCommand(std),
		operate.KeyCommand(std),
		operate.ProtoCommand(std),
		operate.ServeCommand(std),
		operate.ServiceCommand(std),
		operate.StateCommand(std),
		operate.TokenCommand(std),

		completionCommand(std),
		manCommand(std),
		versionCommand(std),
	)
	remote.CompleteAll(root)
	return root
}
