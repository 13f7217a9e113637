package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
)

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
