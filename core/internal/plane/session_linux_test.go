package plane

import (
	"testing"

	"golang.org/x/sys/unix"
)

// session is that of the test, which is the decoder's here.
func session(t *testing.T) int {
	t.Helper()
	id, err := unix.Getsid(0)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
