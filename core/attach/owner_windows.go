package attach

import "os"

// keepOwner does nothing: a file has the rights of its folder.
func keepOwner(*os.File, string) error { return nil }
