package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// progress is a line on a terminal that shows how many documents were sent. It is not shown elsewhere, nor for one
// document.
type progress struct {
	out   io.Writer
	total int
}

func (p *progress) show(n int) {
	if p.total > 1 && isTerminal(p.out) {
		_, _ = fmt.Fprintf(p.out, "\r\x1b[Kapplying %d of %d ...", n, p.total)
	}
}

func (p *progress) clear() {
	if p.total > 1 && isTerminal(p.out) {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// confirm asks a question at the terminal until ctx ends; only y and yes are yes.
func confirm(ctx context.Context, std streams, question string) (bool, error) {
	_, _ = fmt.Fprint(std.err, question+" [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(std.in).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case text := <-answer:
		return text == "y" || text == "yes", nil
	case <-ctx.Done():
		_, _ = fmt.Fprintln(std.err)
		return false, errors.New("interrupted")
	}
}
