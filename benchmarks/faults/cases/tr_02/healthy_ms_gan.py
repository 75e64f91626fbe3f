"""A small adversarial network that learns points on a ring, one optimizer for each side; PyNative loop."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(5)
BATCH = 64


def mlp(n_in, n_out):
    return nn.SequentialCell(nn.Dense(n_in, 48), nn.LeakyReLU(0.2), nn.Dense(48, 48), nn.LeakyReLU(0.2), nn.Dense(48, n_out))


generator, critic = mlp(4, 2), mlp(2, 1)
opt_g = nn.Adam(generator.trainable_params(), learning_rate=1e-3, beta1=0.5)
opt_c = nn.Adam(critic.trainable_params(), learning_rate=1e-3, beta1=0.5)
bce = nn.BCEWithLogitsLoss()
ones, zeros = ops.ones((BATCH, 1)), ops.zeros((BATCH, 1))


def real_batch():
    angle = np.random.uniform(0, 2 * np.pi, BATCH)
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1) + np.random.normal(0, 0.05, (BATCH, 2))
    return Tensor(points.astype(np.float32))


def noise():
    return Tensor(np.random.normal(size=(BATCH, 4)).astype(np.float32))


def critic_loss(real, fake):
    return bce(critic(real), ones) + bce(critic(fake), zeros)


def generator_loss(z):
    return bce(critic(generator(z)), ones)


critic_grad = ms.value_and_grad(critic_loss, None, opt_c.parameters)
generator_grad = ms.value_and_grad(generator_loss, None, opt_g.parameters)
generator.set_train()
critic.set_train()
for step in range(150):
    fake = ops.stop_gradient(generator(noise()))
    loss_c, grads = critic_grad(real_batch(), fake)
    opt_c(grads)
    loss_g, grads = generator_grad(noise())
    opt_g(grads)
    if step % 30 == 29:
        radius = float(ops.norm(generator(noise()), dim=1).mean())
        print(step, float(loss_c), float(loss_g), radius)
