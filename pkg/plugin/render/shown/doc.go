// Package shown makes of changes what may be shown of them: without the values of Secrets, and without what nobody changed or wants to read.
package shown
