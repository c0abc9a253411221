//go:build !linux

package host

// other is the test binary as another process; cells and their tests are Linux's.
func other(string, string) bool { return false }
