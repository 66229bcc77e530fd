// Included by nccl.h, which uses nothing of it.
#pragma once
