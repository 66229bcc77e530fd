// Network plugins that Tutti cannot use: OTHER_VERSION is too old or too new, or lacks functions.
extern "C" {
#define OTHER_NAME_OF(version) ncclNetPlugin_v##version
#define OTHER_NAME(version) OTHER_NAME_OF(version)
extern const char* OTHER_NAME(OTHER_VERSION)[32];
const char* OTHER_NAME(OTHER_VERSION)[32] = {"Other"};
}
