package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
)

// Confirm asks a question on the terminal and waits for the answer until ctx ends. Only the answers y and yes mean yes.
func Confirm(ctx context.Context, std Streams, question string) (bool, error) {
	_, _ = fmt.Fprint(std.Err, question+" [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(std.In).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case text := <-answer:
		return text == "y" || text == "yes", nil
	case <-ctx.Done():
		_, _ = fmt.Fprintln(std.Err)
		return false, errors.New("interrupted")
	}
}
