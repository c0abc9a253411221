//go:build unix

package app

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openTo returns why others may change a file or folder; empty: they may not.
func openTo(info fs.FileInfo, above bool) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	mode, us := info.Mode(), uint32(os.Geteuid())
	switch {
	case st.Uid != us && st.Uid != 0:
		return fmt.Sprintf("belongs to user %d", st.Uid)
	case mode&fs.ModeSymlink != 0, mode.IsDir() && above && mode&fs.ModeSticky != 0:
		return ""
	case mode.Perm()&0o002 != 0:
		return fmt.Sprintf("is writable by everybody (%s)", mode)
	case mode.Perm()&0o020 != 0 && st.Gid != 0 && st.Gid != us:
		return fmt.Sprintf("is writable by group %d (%s)", st.Gid, mode)
	}
	return ""
}
