package loopback

import (
	"fmt"
	"net"
	"os"
	"strconv"
)

// Own returns an error when the other end of a TCP connection over loopback is of another user: neither of the one of this
// process, nor root, nor the one who became it by sudo. Every user of a machine reaches its loopback addresses. A connection
// of which this kernel does not have the other end, as the host of a virtual machine forwards it, passes, and so do all on
// systems other than Linux.
func Own(c net.Conn) error {
	local, ok := c.LocalAddr().(*net.TCPAddr)
	other, too := c.RemoteAddr().(*net.TCPAddr)
	if !ok || !too {
		return fmt.Errorf("loopback: a connection of %T has no ports", c)
	}
	user, known, err := owner(other.AddrPort(), local.AddrPort())
	if err != nil {
		return err
	}
	if !known || user == 0 || int(user) == os.Geteuid() || strconv.FormatUint(uint64(user), 10) == os.Getenv("SUDO_UID") {
		return nil
	}
	return fmt.Errorf("loopback: the other end is of user %d, and this one of user %d", user, os.Geteuid())
}
