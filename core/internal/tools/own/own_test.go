package own

import "testing"

func TestExternal(t *testing.T) {
	for path, want := range map[string]bool{
		"fmt": false, "net/http": false, "internal/abi": false, module: false, module + "/core/msg": false, module + "-more": true,
		"github.com/spf13/cobra": true, "golang.org/x/sys/unix": true,
	} {
		if External(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}
