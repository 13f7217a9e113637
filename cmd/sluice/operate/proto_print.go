package operate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/gateway"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/proto"
)

// protoPrint has the flags of `sluice proto print`.
type protoPrint struct {
	std     terminal.Streams
	numbers string
	pkg     string
	to      string
}

func protoPrintCommand(std terminal.Streams) *cobra.Command {
	p := protoPrint{std: std}
	cmd := &cobra.Command{
		Use:   "print [DIR]",
		Short: "Print the .proto file of a catalogue, and keep the numbers of its fields",
		Long: "Print the .proto file of a catalogue: the standard methods and the messages of its kinds, as the newest\n" +
			"released version of its API has them, or the catalogue itself where nothing was released.\n\n" +
			"The numbers of fields are kept in a file, which is made if it is not there. What is new gets numbers that\n" +
			"were never used, and nothing is removed. Commit the file: gateways read it (--field-numbers).",
		Example: "  sluice proto print ./kinds --numbers numbers.txt > kinds.proto\n" +
			"  sluice proto print ./kinds --numbers numbers.txt --package acme.network.v1 --to acme/network/v1/kinds.proto",
		Args: command.Args(0, 1),
		RunE: func(_ *cobra.Command, args []string) error { return p.run(directory(args)) },
	}
	f := cmd.Flags()
	f.StringVar(&p.numbers, "numbers", "", "file that keeps the numbers of fields; required")
	f.StringVar(&p.pkg, "package", "",
		"package of the messages, for a new file of numbers (default "+proto.DefaultPackage+")")
	f.StringVar(&p.to, "to", "", "file to write (default: the standard output)")
	return cmd
}

func (p protoPrint) run(dir string) error {
	if p.numbers == "" {
		return exit.Usage(errors.New("numbers: name the file that keeps the numbers of fields, with --numbers; " +
			"it is made if it is not there"))
	}
	c, err := sdl.Read(dir)
	if err != nil {
		return err
	}
	kinds, err := gateway.MethodKinds(c)
	if err != nil {
		return err
	}
	numbers, err := p.read()
	if err != nil {
		return exit.Usage(fmt.Errorf("numbers: %w", err))
	}
	before := numbers.File()
	added := numbers.Add(kinds)
	schema, err := proto.New(kinds, numbers)
	if err != nil {
		return exit.Usage(err)
	}
	if len(added) > 0 || !bytes.Equal(before, numbers.File()) {
		if err := writeFile("numbers", p.numbers, numbers.File()); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(p.std.Err, "sluice: note: %s has changed by %s; commit it\n",
			output.Printable(p.numbers), output.Plural(len(added), "line"))
	}
	if p.to != "" {
		return writeFile("to", p.to, []byte(schema.Print()))
	}
	_, err = fmt.Fprint(p.std.Out, schema.Print())
	return err
}

// read reads the file of field numbers. If the file does not exist, it returns empty numbers.
func (p protoPrint) read() (*proto.Numbers, error) {
	file, err := config.ReadAtMost(p.numbers, proto.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		pkg := p.pkg
		if pkg == "" {
			pkg = proto.DefaultPackage
		}
		return proto.NewNumbers(pkg)
	}
	if err != nil {
		return nil, err
	}
	numbers, err := proto.ParseNumbers(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", output.Printable(p.numbers), err)
	}
	if p.pkg != "" && p.pkg != numbers.Package {
		return nil, fmt.Errorf("%s is of the package %s; another package needs another file of numbers",
			output.Printable(p.numbers), numbers.Package)
	}
	return numbers, nil
}

// writeFile writes a file, readable for all users, either completely or not at all.
func writeFile(flag, path string, content []byte) error {
	part, err := createPart(flag, path)
	if err != nil {
		return err
	}
	_, err = part.Write(content)
	if err == nil {
		err = part.Chmod(0o644) // it is no secret, and gateways of other users read it
	}
	if err == nil {
		err = part.complete()
	}
	if err != nil {
		part.discard()
		return err
	}
	return part.name()
}
