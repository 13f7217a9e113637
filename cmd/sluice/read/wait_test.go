package read_test

import "testing"

func TestWait_SaysWhatCanBeWaitedFor(t *testing.T) {
	refuse(t,
		refusal{"wait network/a", "for"},
		refusal{"wait network/a --for=ready", "for"},
		refusal{"wait network/a --for=delete --timeout 0s", "timeout: a duration over 0 is accepted"},
		refusal{"wait networks --for=delete", "wait: KIND NAME..."},
		refusal{"wait network/a -l team=web --for=delete", "it does not go with names"},
		refusal{"wait network/a --for=condition=Available", "kind Network has no conditions"},
	)
}
